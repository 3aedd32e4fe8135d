/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registration modes, see mr_mode.h. */
#include "mr_mode.h"

#define OLD_MODES (INFO_MR_BASIC | INFO_MR_SCALABLE)
/* Apply only to memory that peers may access. */
#define TARGET_MODES (FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_RMA_EVENT)

static bool is_target(uint64_t caps)
{
	if (!(caps & (FI_RMA | FI_ATOMIC)))
		return false;
	return (caps & (FI_REMOTE_READ | FI_REMOTE_WRITE)) || !(caps & (FI_READ | FI_WRITE));
}

int mr_mode_required(int offered, uint64_t caps)
{
	int mode = offered & ~OLD_MODES;

	if (!(caps & FI_HMEM))
		mode &= ~FI_MR_HMEM;
	if (is_target(caps))
		return mode;
	/* If nothing needs registration, no other bit applies. */
	return mode & (FI_MR_LOCAL | FI_MR_HMEM) ? mode & ~TARGET_MODES : 0;
}

bool mr_mode_is_old(int mode, uint32_t api_version)
{
	return api_version < FI_VERSION(1, 5) || (mode & OLD_MODES);
}

int mr_mode_old_answer(int offered, int asked)
{
	/* FI_MR_SCALABLE means offsets and keys that the application chooses. */
	if (!(offered & (TARGET_MODES | FI_MR_ALLOCATED)))
		offered |= INFO_MR_SCALABLE;
	if (asked == INFO_MR_BASIC || asked == INFO_MR_SCALABLE)
		return offered & asked ? asked : -1;
	if (asked)
		return -1;
	/* Programs that ask for neither were written when only this one existed. */
	if (offered & INFO_MR_BASIC)
		return INFO_MR_BASIC;
	return offered & INFO_MR_SCALABLE ? INFO_MR_SCALABLE : -1;
}
