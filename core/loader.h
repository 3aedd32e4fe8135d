/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Loadable providers: shared objects NAME-fi.so with a function fi_prov_ini. */
#ifndef WEFT_CORE_LOADER_H
#define WEFT_CORE_LOADER_H

/*
 * loader_run - load the providers that a search path names, and register them
 * @path:     the value of FI_PROVIDER_PATH, or NULL
 * @fallback: the folder to search if @path names none
 *
 * The entries, separated by ':', are each a folder whose *-fi.so are loaded in alphabetical order, or one
 * such file, or '+' and the absolute path of a file that is preferred to other providers of its
 * name. A path that begins with '@' makes the order of loading decide between providers of a
 * name instead of their versions. With only '+' entries, @fallback is searched too. In @fallback a
 * file libNAME-fi.so is skipped if a provider NAME is registered, since Weft's own loadable provider, for
 * other libfabrics, is installed there.
 *
 * An entry of @path that can't be read or loaded causes one warning, which says what to do; a
 * @fallback that does not exist causes none. Called once, while the core
 * starts, under its start lock.
 * Source: fi_provider(7), the help text of FI_PROVIDER_PATH in fi_info(1) -e.
 */
void loader_run(const char *path, const char *fallback);

#endif /* WEFT_CORE_LOADER_H */
