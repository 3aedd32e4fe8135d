/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Settings: fi_param_define and fi_param_get read FI_<PROVIDER>_<NAME> from the environment,
 * or from libfabric.conf in the system configuration folder. Called by the core while it
 * starts and by providers, on any thread; one lock inside, of the lowest rank.
 */
#ifndef WEFT_CORE_PARAMS_H
#define WEFT_CORE_PARAMS_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

/*
 * params_load - read a configuration file
 * @path: lines of NAME=VALUE; other lines, and those that begin with #, are ignored
 *
 * A missing file is no error. A later line for the same name wins.
 * Returns the number of settings read, or -FI_ENOMEM.
 */
int params_load(const char *path);

/*
 * params_prefer_file - if @prefer, settings of the file take precedence over the environment
 */
void params_prefer_file(bool prefer);

/*
 * params_forget_provider - drop the definitions of a provider that is unloaded
 */
void params_forget_provider(const struct fi_provider *prov);

/*
 * params_clear - drop all definitions and all settings from files
 */
void params_clear(void);

/*
 * params_define_core - define a setting of the library itself, FI_<NAME>
 * params_string      - its value
 *
 * params_string returns NULL if it is not set. The string is valid until params_clear, or until the
 * program changes its environment.
 */
void params_define_core(const char *name, enum fi_param_type type, const char *help);
char *params_string(const char *name);

/* params_hold, params_release - take and give back the lock, around a fork */
void params_hold(void);
void params_release(void);

#endif /* WEFT_CORE_PARAMS_H */
