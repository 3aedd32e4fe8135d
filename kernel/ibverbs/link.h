/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the provider kofi_ibverbs needs of RDMA devices, without a header of Linux: ports that listen, links that are
 * reliable connections of a queue pair each, and payload that a peer writes. port.c, link.c and memory.c carry it out over
 * ib_core and rdma_cm; wire.c, conn.c and moves.c call it, on the thread that holds the endpoint's domain. Each link
 * and port is used by one thread at a time; devices are removed by others, after which links have ended.
 */
#ifndef KOFI_IBVERBS_LINK_H
#define KOFI_IBVERBS_LINK_H

#include <rdma/fabric.h>

/* Bytes of a message, at most, and how many receives are posted ahead of each link */
#define KIB_MESSAGE_MAX 8256u
#define KIB_DEPTH	32u
/* Bytes of memory that a peer writes by one key, at most, and how many such keys a link has at once */
#define KIB_WINDOW_MAX 262144u
#define KIB_WINDOWS    8u
/* Pieces of memory that one access gathers */
#define KIB_PIECES 8u
/* Bytes of the greeting in the private data of a request and of its answer */
#define KIB_GREETING_MAX 48u
#define KIB_DEVICE_NAME	 64u

struct kib_port;
struct kib_link;
struct kib_window;

/* The network's part of a struct weft_addr */
struct kib_address {
	uint16_t family;
	/* host byte order */
	uint16_t port;
	uint32_t scope;
	uint8_t ip[16];
};

/* Memory of the caller, in the kernel's addresses */
struct kib_range {
	void *addr;
	size_t len;
};

/* A part of a port that a device of this machine can be reached by */
struct kib_place {
	char device[KIB_DEVICE_NAME];
	struct kib_address address;
};

/* kib_begin, kib_end - know of devices that are removed, from before the first port to after the last. Returns 0 or -FI_E* */
int kib_begin(void);
void kib_end(void);

/* kib_places - up to @max addresses of this machine that belong to RDMA devices. Returns how many, or -FI_ENOMEM */
int kib_places(struct kib_place *out, int max);
/* kib_address_read - a number of a host and of a port, either of which may be NULL. Returns 0 or -FI_ENODATA */
int kib_address_read(const char *node, const char *service, struct kib_address *out);

/* Ports */

/*
 * kib_port_open - what an endpoint is reached by
 * @at:      family, and address or any; port 0: a free one
 * @listens: false: links are dialled from there and none is received
 * @wake:    called in any context with @arg while the port is armed and there may be something
 * @where:   out: @at with its port
 * Returns 0 or -FI_E*.
 */
int kib_port_open(const struct kib_address *at, bool listens, void (*wake)(void *arg),
		  void *arg, struct kib_port **out, struct kib_address *where);
/* kib_port_close - links that were received, and that the caller has not seen, end. It has no other */
void kib_port_close(struct kib_port *port);

enum kib_step {
	/* Received, with a greeting: to be accepted or rejected */
	KIB_REQUEST,
	/* May be sent on, with the greeting of the other side's answer where this side dialled */
	KIB_READY,
	/* Has ended, or was not made; nothing follows but what was received before */
	KIB_ENDED,
};

struct kib_event {
	struct kib_link *link;
	enum kib_step step;
	/* KIB_ENDED: -FI_E* */
	int err;
	uint32_t greeting_len;
	uint8_t greeting[KIB_GREETING_MAX];
};

/* kib_port_next - the next step of a link of the port. Returns false if there is none */
bool kib_port_next(struct kib_port *port, struct kib_event *event);
/* kib_port_arm - wake from now on. Returns false if there is a step, or kib_link_poll() may have something */
bool kib_port_arm(struct kib_port *port);
void kib_port_disarm(struct kib_port *port);

/* Links. They hold all that they have until kib_link_free(). */

/* kib_link_dial - begin to connect; KIB_READY or KIB_ENDED follows. Returns 0 or -FI_E* */
int kib_link_dial(struct kib_port *port, const struct kib_address *to, const void *greeting,
		  uint32_t greeting_len, struct kib_link **out);
/* kib_link_accept - answer a request: KIB_READY or KIB_ENDED follows. Returns 0 or -FI_E*: it has ended */
int kib_link_accept(struct kib_link *link, const void *greeting, uint32_t greeting_len);
/* kib_link_reject - refuse a request, which says @greeting; the link ends. kib_link_free() follows */
void kib_link_reject(struct kib_link *link, const void *greeting, uint32_t greeting_len);
/* kib_link_stop - end it: afterwards no memory is accessed for it. Does nothing the second time */
void kib_link_stop(struct kib_link *link);
/* kib_link_free - stop it, and free what was received and claimed */
void kib_link_free(struct kib_link *link);
/* kib_link_owner, kib_link_own - what the caller knows a link by; NULL at first */
void *kib_link_owner(const struct kib_link *link);
void kib_link_own(struct kib_link *link, void *owner);
/* kib_link_part - it belongs to no port: its steps are kept. kib_link_join - it belongs to @port, maybe another one */
void kib_link_part(struct kib_link *link);
void kib_link_join(struct kib_link *link, struct kib_port *port);
/*
 * kib_link_probe - have the other side's device acknowledge nothing, unless that is under way: KIB_BROKEN follows if it does
 * not answer. Takes none of its receives. Returns 0, or -FI_E*: the link is broken
 */
int kib_link_probe(struct kib_link *link);
/* kib_link_names - addresses of both ends. Returns 0 or -FI_ENOTCONN */
int kib_link_names(struct kib_link *link, struct kib_address *local, struct kib_address *remote);

/* A message of this side. KIB_DEPTH of them can be under way. */
struct kib_message {
	uint8_t *bytes;
	/* The caller's */
	void *cookie;
};

/* kib_link_claim - memory for a message, or NULL: all are under way. kib_link_unclaim - give it back unsent */
struct kib_message *kib_link_claim(struct kib_link *link);
void kib_link_unclaim(struct kib_link *link, struct kib_message *message);
/* kib_link_spare - how many more may be claimed */
uint32_t kib_link_spare(const struct kib_link *link);

/*
 * kib_link_send - send @len bytes of a claimed message; in the order of these calls
 * kib_link_send_ending - the same; the other side's device gives the key @key up as the message arrives
 * Return 0 or -FI_E*: the link is broken, and nothing else can be done with it.
 */
int kib_link_send(struct kib_link *link, struct kib_message *message, uint32_t len);
int kib_link_send_ending(struct kib_link *link, struct kib_message *message, uint32_t len,
			 uint32_t key);

enum kib_what {
	/* A message is received: bytes, len, and buffer for kib_link_repost(); key: given up by it, or 0 */
	KIB_RECEIVED,
	/* A message was received by the other side's device; cookie: as it was when it was sent */
	KIB_SENT,
	/* kib_link_write() is over: its memory is not read any more */
	KIB_WRITTEN,
	/* kib_window_shut() is over */
	KIB_SHUT,
	/* The link is broken */
	KIB_BROKEN,
};

struct kib_done {
	enum kib_what what;
	uint32_t len;
	uint32_t key;
	uint32_t buffer;
	const uint8_t *bytes;
	void *cookie;
};

/* kib_link_poll - up to @max things that have happened. Returns how many */
int kib_link_poll(struct kib_link *link, struct kib_done *done, int max);
/* kib_link_repost - what was received is not needed any more. Returns 0 or -FI_E*: the link is broken */
int kib_link_repost(struct kib_link *link, uint32_t buffer);

/* Payload. A window is memory of this side that the peer of the link may write, by a key that is used once. */

/*
 * kib_window_open - let the peer write [addr, addr + len), at most KIB_WINDOW_MAX bytes, not 0
 * @cookie: of KIB_SHUT
 * @key, @at: out: by which the peer names it
 * What is sent next follows the registration, so that it may name the key.
 * Returns 0; -FI_EAGAIN: all windows are open, or there is no room; -FI_EFAULT: no memory that a device can reach;
 * or another -FI_E*.
 */
int kib_window_open(struct kib_link *link, const struct kib_range *range, void *cookie,
		    struct kib_window **out, uint32_t *key, uint64_t *at);
/*
 * kib_window_shut - the key is given up: by the device already, if it is @given_up
 * Returns 1: the memory is this side's again; 0: KIB_SHUT follows, which says so; or -FI_E*: the link is broken.
 * The window must not be used any more.
 */
int kib_window_shut(struct kib_window *window, uint32_t given_up);

/*
 * kib_link_write - write memory of the other side from @ranges, whose memory is borrowed until KIB_WRITTEN with @cookie
 * @cnt:   at most KIB_PIECES; the bytes at most KIB_WINDOW_MAX
 * Returns 0; -FI_EAGAIN: no room now; -FI_EFAULT; or another -FI_E*: the link is broken.
 */
int kib_link_write(struct kib_link *link, const struct kib_range *ranges, uint32_t cnt,
		   uint64_t at, uint32_t key, void *cookie);

#endif
