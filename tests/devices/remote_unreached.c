/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * remote_unreached HOST PORT UNUSED COUNT - ask a lender's door, and say that answers go to where nobody is
 *
 * Each request is right but for the endpoint that it names, which is at the port UNUSED, and comes from another borrower.
 * What is tested is that others are answered, which the caller does. Says how many went out.
 */
#include "message.h"
#include "port.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_S 10

/* struct asker - @bytes: of the request that is under way */
struct asker {
	struct port port;
	struct fid_ep *ep;
	fi_addr_t peer;
	struct fi_context2 context;
	uint8_t bytes[sizeof(struct lease_envelope) + sizeof(struct lease_message)];
};

static void open_asker(struct asker *a, const char *host, const char *service)
{
	struct port_request request = {
		.provider = "tcp", .host = host, .service = service, .cq_len = 16
	};

	if (port_open(&request, &a->port) || port_ep_open(&a->port, &a->ep) ||
	    !a->port.info->dest_addr ||
	    fi_av_insert(a->port.av, a->port.info->dest_addr, 1, &a->peer, 0, NULL) != 1)
		errx(1, "no endpoint");
}

static void ask(struct asker *a, const struct sockaddr_in *answer_to, uint64_t life)
{
	struct lease_message msg = { .version = LEASE_VERSION, .kind = LEASE_HELLO, .seq = 1 };
	struct lease_envelope envelope = { .version = LEASE_VERSION,
					   .name_len = sizeof(*answer_to),
					   .life = life };
	struct fi_cq_data_entry entry;
	time_t end = time(NULL) + WAIT_S;
	ssize_t ret;

	memcpy(envelope.name, answer_to, sizeof(*answer_to));
	memcpy(a->bytes, &envelope, sizeof(envelope));
	memcpy(a->bytes + sizeof(envelope), &msg, sizeof(msg));
	do {
		ret = fi_send(a->ep, a->bytes, sizeof(a->bytes), NULL, a->peer, &a->context);
		if (ret == -FI_EAGAIN)
			fi_cq_read(a->port.cq, &entry, 1);
	} while (ret == -FI_EAGAIN && time(NULL) < end);
	while (!ret && (ret = fi_cq_read(a->port.cq, &entry, 1)) == -FI_EAGAIN &&
	       time(NULL) < end)
		ret = 0;
	if (ret != 1)
		errx(1, "a request is not sent: %zd", ret);
}

int main(int argc, char **argv)
{
	static struct asker a;
	struct sockaddr_in nobody = { .sin_family = AF_INET };
	uint64_t i, count;

	if (argc != 5 || inet_pton(AF_INET, argv[1], &nobody.sin_addr) != 1)
		errx(2, "usage: %s HOST PORT UNUSED COUNT", argv[0]);
	nobody.sin_port = htons((uint16_t)atoi(argv[3]));
	count = strtoull(argv[4], NULL, 0);
	open_asker(&a, argv[1], argv[2]);
	for (i = 1; i <= count; i++)
		ask(&a, &nobody, i);
	printf("%llu sent\n", (unsigned long long)count);
	fi_close(&a.ep->fid);
	port_close(&a.port);
	return 0;
}
