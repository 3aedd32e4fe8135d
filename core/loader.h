/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loadable providers: shared objects NAME-fi.so with a function fi_prov_ini. */
#ifndef WEFT_CORE_LOADER_H
#define WEFT_CORE_LOADER_H

/*
 * loader_run - load what a search path names, and register it
 * @path:     the value of FI_PROVIDER_PATH, or NULL
 * @fallback: the folder to search where @path names none
 *
 * An entry, between ':', is a folder whose *-fi.so are loaded in alphabetical order, or one
 * such file, or '+' and the absolute path of a file that is preferred to others of its
 * provider's name. A path that begins with '@' makes the order of loading decide between
 * providers of a name, not their version. A path of '+' entries alone leaves the search in
 * @fallback on. There a file libNAME-fi.so is passed over when a provider NAME is registered: we
 * install our own there too, for other libfabrics to load.
 *
 * What can't be read or loaded is reported by at most one warning per entry of @path that
 * says what to do; a @fallback that does not exist by none. Called once, while the core
 * starts, under its start lock.
 * Source: fi_provider(7), the help text of FI_PROVIDER_PATH in fi_info(1) -e.
 */
void loader_run(const char *path, const char *fallback);

#endif /* WEFT_CORE_LOADER_H */
