/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a provider gives to the core and takes from it. The core calls a
 * provider's functions on whatever thread called fi_getinfo or fi_fabric,
 * cleanup when the library is unloaded.
 * Source: fi_provider(3), fi_provider(7).
 */
#ifndef FI_PROV_H
#define FI_PROV_H

#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loadable provider is a file lib<name>-fi.so ... */
#define FI_LIB_EXTENSION "fi"
#define FI_LIB_SUFFIX	 FI_LIB_EXTENSION ".so"

/* ... with this one entry, called when it is loaded; NULL means it is not usable. */
#define FI_EXT_INI                                                                      \
	__attribute__((visibility("default"), EXTERNALLY_VISIBLE)) struct fi_provider * \
	fi_prov_ini(void)

/*
 * struct fi_provider - a provider, as the core knows it
 * @name:     unique; one that begins with ofi_ works over others
 * @getinfo:  answers fi_getinfo, under its rules; hints have its name or none
 * @fabric:   answers fi_fabric
 * @cleanup:  called once before it is unloaded; may be NULL
 *
 * Source: fi_provider(3).
 */
struct fi_provider {
	uint32_t version;	   /* the provider's own */
	uint32_t fi_version;	   /* interface level it was written for */
	struct fi_context context; /* the core's */
	const char *name;
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	void (*cleanup)(void);
};

/*
 * fi_param_define - announce a parameter, FI_<PROVIDER>_<NAME> in the environment
 * @provider:        NULL for one of the core, FI_<NAME>
 * @help_string_fmt: printf format of what fi_info -e shows
 *
 * Returns 0, or -FI_EINVAL, -FI_ENOMEM. Source: fi_provider(3).
 */
int fi_param_define(const struct fi_provider *provider, const char *param_name,
		    enum fi_param_type type, const char *help_string_fmt, ...);

/*
 * fi_param_get - read a parameter that was defined
 * @value: set to char * (borrowed), int, int (a truth value) or size_t
 *
 * Returns 0, or -FI_ENODATA when it is not set, -FI_ENOENT when it was not
 * defined, -FI_EINVAL when its text does not fit the type; value is left as it
 * was then. Source: fi_provider(3).
 */
int fi_param_get(struct fi_provider *provider, const char *param_name, void *value);

/* fi_param_get_str - fi_param_get of FI_PARAM_STRING */
static inline int fi_param_get_str(struct fi_provider *provider, const char *param_name,
				   char **value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get_int - fi_param_get of FI_PARAM_INT */
static inline int fi_param_get_int(struct fi_provider *provider, const char *param_name,
				   int *value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get_bool - fi_param_get of FI_PARAM_BOOL */
static inline int fi_param_get_bool(struct fi_provider *provider, const char *param_name,
				    int *value)
{
	return fi_param_get(provider, param_name, value);
}

/* fi_param_get_size_t - fi_param_get of FI_PARAM_SIZE_T */
static inline int fi_param_get_size_t(struct fi_provider *provider, const char *param_name,
				      size_t *value)
{
	return fi_param_get(provider, param_name, value);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_PROV_H */
