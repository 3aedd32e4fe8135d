/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The notes that processes send each other over sockets: made, and checked.
 */
#include <rdma/fi_errno.h>
#include "note.h"

struct pshm_note pshm_note_of(enum pshm_note_type type)
{
	return (struct pshm_note){ .magic = PSHM_NOTE_MAGIC,
				   .version = PSHM_NOTE_VERSION,
				   .type = (uint16_t)type };
}

bool pshm_note_valid(const struct pshm_note *note, const struct sys_local_received *received)
{
	bool cut = received->err != 0;

	if (note->magic != PSHM_NOTE_MAGIC || note->version != PSHM_NOTE_VERSION || note->zero)
		return false;
	if ((note->type == PSHM_NOTE_REFUSED) != (note->error != 0) ||
	    note->error >= 2 * FI_ERRNO_OFFSET)
		return false;
	switch (note->type) {
	case PSHM_NOTE_ASK:
		return !pshm_nonce_none(note->to) && !pshm_nonce_none(note->from) &&
		       !pshm_nonce_none(note->pair) && (received->cnt == 2 ? !cut : cut);
	case PSHM_NOTE_INBOX:
		return pshm_nonce_none(note->to) && pshm_nonce_none(note->from) &&
		       (received->cnt == 1 ? !cut : !received->cnt && cut);
	case PSHM_NOTE_REFUSED:
		return pshm_nonce_none(note->to) && pshm_nonce_none(note->from) &&
		       !received->cnt && !cut;
	case PSHM_NOTE_WAKE:
		return pshm_nonce_none(note->from) && pshm_nonce_none(note->pair) &&
		       !received->cnt && !cut;
	default:
		return false;
	}
}

void pshm_received_close(struct sys_local_received *received)
{
	while (received->cnt)
		sys_local_close(received->fds[--received->cnt]);
}
