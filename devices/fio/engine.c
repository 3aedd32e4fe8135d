/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * weft_fio.so: fio on a borrowed NVMe, an external engine of Debian's fio 3.33 (ioengine=external:PATH). Each job has a
 * queue pair of its own, and its buffers in a segment that the device reaches: nothing is copied. fio calls prepare and
 * clean up in the job's thread or process, weft_setup() also in the process that starts them; queue, commit and getevents
 * in the one thread that the queue pair belongs to.
 *
 * Between this file and fio is a binary interface: the headers are those of fio's source package, and what they declare is
 * in the program.
 */
#include <fio.h>
#include <optgroup.h>
#include <weft/nvme.h>
#include "borrow.h"
#include "status_errno.h"

#define BLOCKS_MAX 65536u /* of a command */

/* Options, which fio stores by their offsets; the first one must not be at 0. */
struct options {
	void *pad;
	char *lender;
	char *device;
	char *ticket;
	unsigned nsid;
	unsigned shared;
	unsigned blocking;
	unsigned near_device;
	unsigned lease_ms;
};

/*
 * struct flight - a command from queue() to event()
 * @next: free ones
 */
struct flight {
	struct flight *next;
	struct io_u *io_u;
};

/*
 * struct job - what a thread of fio has
 * @depth:      of fio, which the queue pair's may be less than: commands wait here, since fio's verify makes what it
 *		expects anew for those that an engine has no room for
 * @commands:   of queue(), until commit() begins them: queued_cnt, from the first one on
 * @busy_cnt:   flights that are not free: queued, or under way
 * @failed:     commands that could not begin: getevents() reports them; failed_cnt
 * @events:     what getevents() has returned
 * @lost:       the lease has ended: the errno
 */
struct job {
	struct borrow *borrow;
	struct weft_nvme *qp;
	struct weft_nvme_namespace ns;
	uint32_t nsid;

	struct weft_segment *mem;
	struct weft_window *mem_window;

	uint32_t depth;
	uint32_t queued_cnt;
	uint32_t busy_cnt;
	uint32_t failed_cnt;
	int lost;
	struct flight *flights;
	struct flight *free_flights;
	struct weft_nvme_command *commands;
	struct weft_nvme_completion *done;
	struct io_u **failed;
	struct io_u **events;
};

struct ioengine_ops ioengine;

static void say(struct thread_data *td, int err, const char *what)
{
	log_err("weft: %s: %s\n", what, strerror(err));
	td_verror(td, err, what);
}

static struct borrow_wish wish_of(const struct thread_data *td)
{
	const struct options *o = td->eo;

	return (struct borrow_wish){
		.lender = o->lender,
		.device = o->device,
		.ticket = o->ticket ? o->ticket : getenv("WEFT_TICKET"),
		.shared = o->shared,
		.ms = o->lease_ms,
	};
}

/* The namespace, before any job begins. */
static int look(struct thread_data *td, struct weft_nvme_namespace *ns)
{
	const struct options *o = td->eo;
	struct borrow_wish wish = wish_of(td);
	struct borrow *borrow;
	int ret;

	if (!wish.ticket)
		return borrow_look(&wish, o->nsid, ns);
	ret = borrow_get(&wish, &borrow);
	if (ret)
		return ret;
	ret = weft_nvme_namespace(borrow_device(borrow), o->nsid, ns);
	borrow_put(borrow);
	return ret;
}

static int weft_setup(struct thread_data *td)
{
	struct weft_nvme_namespace ns;
	struct fio_file *file;
	int ret;

	/* Members are where the headers say only in the fio that they are of. */
	if (td->io_ops != &ioengine) {
		log_err("weft: this fio is not the one that the engine was built for\n");
		return 1;
	}
	if (!td->files_index) {
		add_file(td, "weft", 0, 0);
		td->o.nr_files = 1;
		td->o.open_files++;
	}
	if (td->files_index != 1) {
		log_err("weft: a job has one file, which is the namespace; it has %u\n",
			td->files_index);
		td_verror(td, EINVAL, "nrfiles");
		return 1;
	}
	ret = look(td, &ns);
	if (ret) {
		say(td, -ret, "looking for the device");
		return 1;
	}
	file = td->files[0];
	file->filetype = FIO_TYPE_BLOCK;
	file->real_file_size = ns.blocks * ns.block_size;
	fio_file_set_size_known(file);
	return 0;
}

/* fio adds the sizes and counts of a job to begin with; what does not fit is said here and not for each command. */
static int check_sizes(struct thread_data *td, const struct job *job)
{
	const struct weft_nvme_namespace *ns = &job->ns;
	const unsigned directions[] = { DDIR_READ, DDIR_WRITE, DDIR_TRIM };
	size_t i;

	for (i = 0; i < sizeof(directions) / sizeof(*directions); i++) {
		const unsigned ddir = directions[i];
		const unsigned long long min = td->o.min_bs[ddir], max = td->o.max_bs[ddir];
		unsigned long long most = (unsigned long long)BLOCKS_MAX * ns->block_size;

		if (!(td->o.td_ddir & (1u << ddir)))
			continue;
		if (ddir != DDIR_TRIM && ns->transfer_max && ns->transfer_max < most)
			most = ns->transfer_max;
		if (min % ns->block_size || max % ns->block_size || max > most) {
			log_err("weft: bs is a multiple of %u, and at most %llu\n",
				ns->block_size, most);
			return EINVAL;
		}
	}
	if (td->files[0]->real_file_size > ns->blocks * ns->block_size) {
		log_err("weft: the device that was free is smaller than the first one; device= tells which\n");
		return EINVAL;
	}
	return 0;
}

static int job_alloc(struct job *job)
{
	uint32_t i;

	job->flights = calloc(job->depth, sizeof(*job->flights));
	job->commands = calloc(job->depth, sizeof(*job->commands));
	job->done = calloc(job->depth, sizeof(*job->done));
	job->failed = calloc(job->depth, sizeof(*job->failed));
	job->events = calloc(job->depth, sizeof(*job->events));
	if (!job->flights || !job->commands || !job->done || !job->failed || !job->events)
		return -ENOMEM;
	for (i = job->depth; i-- > 0;) {
		job->flights[i].next = job->free_flights;
		job->free_flights = &job->flights[i];
	}
	return 0;
}

static void job_destroy(struct job *job)
{
	if (job->qp)
		weft_nvme_close(job->qp);
	if (job->borrow)
		borrow_put(job->borrow);
	free(job->flights);
	free(job->commands);
	free(job->done);
	free(job->failed);
	free(job->events);
	free(job);
}

/* A segment that the job's device reaches. */
static int job_segment(const struct job *job, size_t len, struct weft_segment **seg,
		       struct weft_window **window)
{
	struct weft_segment *it;
	int ret = weft_segment_alloc(NULL, len, 0, &it);

	if (ret)
		return ret;
	ret = weft_window_open(borrow_device(job->borrow), it, WEFT_WINDOW_RW, window);
	if (ret)
		weft_segment_free(it);
	else
		*seg = it;
	return ret;
}

static int weft_init(struct thread_data *td)
{
	const struct options *o = td->eo;
	const struct borrow_wish wish = wish_of(td);
	struct weft_nvme_attr attr = {
		.size = sizeof(attr),
		.depth = td->o.iodepth,
		.flags = (o->blocking ? WEFT_NVME_BLOCKING : 0) |
			 (o->near_device ? WEFT_NVME_NEAR_DEVICE : 0),
	};
	struct job *job = calloc(1, sizeof(*job));
	const char *what = "memory";
	int ret = -ENOMEM;

	if (!job)
		goto err;
	job->nsid = o->nsid;
	what = "borrowing the device";
	ret = borrow_get(&wish, &job->borrow);
	if (ret == -EBUSY)
		log_err("weft: jobs that are processes share a device with shared=1\n");
	if (ret)
		goto err;
	what = "the namespace";
	ret = weft_nvme_namespace(borrow_device(job->borrow), job->nsid, &job->ns);
	if (ret)
		goto err;
	what = "block sizes";
	ret = -check_sizes(td, job);
	if (ret)
		goto err;
	what = "opening a queue pair";
	ret = weft_nvme_open(borrow_device(job->borrow), &attr, &job->qp);
	if (ret)
		goto err;
	job->depth = td->o.iodepth;
	what = "memory";
	ret = job_alloc(job);
	if (ret)
		goto err;
	td->io_ops_data = job;
	return 0;

err:
	if (job)
		job_destroy(job);
	say(td, -ret, what);
	return 1;
}

static void weft_cleanup(struct thread_data *td)
{
	if (td->io_ops_data)
		job_destroy(td->io_ops_data);
	td->io_ops_data = NULL;
}

static int weft_iomem_alloc(struct thread_data *td, size_t len)
{
	struct job *job = td->io_ops_data;
	int ret = job_segment(job, len, &job->mem, &job->mem_window);

	if (ret) {
		log_err("weft: a segment for buffers: %s\n", strerror(-ret));
		return 1;
	}
	td->orig_buffer = weft_segment_mem(job->mem);
	return 0;
}

/* fio goes on without memory for its buffers, but not when this fails. */
static int weft_post_init(struct thread_data *td)
{
	return td->error;
}

static void weft_iomem_free(struct thread_data *td)
{
	struct job *job = td->io_ops_data;

	if (!job || !job->mem)
		return;
	weft_window_close(job->mem_window);
	weft_segment_free(job->mem);
	job->mem = NULL;
}

/* Returns false for what the device could not do. */
static bool command_of(const struct job *job, const struct thread_data *td, struct io_u *io_u,
		       struct weft_nvme_command *cmd)
{
	const uint32_t size = job->ns.block_size;

	*cmd = (struct weft_nvme_command){ .nsid = job->nsid };
	if (ddir_sync(io_u->ddir)) {
		cmd->opcode = WEFT_NVME_FLUSH;
		return true;
	}
	if (io_u->offset % size || !io_u->xfer_buflen || io_u->xfer_buflen % size ||
	    io_u->xfer_buflen / size > BLOCKS_MAX)
		return false;

	cmd->lba = io_u->offset / size;
	cmd->blocks = (uint32_t)(io_u->xfer_buflen / size);
	cmd->buf = io_u->xfer_buf;
	if (io_u->ddir == DDIR_READ) {
		cmd->opcode = WEFT_NVME_READ;
	} else if (io_u->ddir == DDIR_TRIM) {
		cmd->opcode = WEFT_NVME_DEALLOCATE;
	} else {
		cmd->opcode = WEFT_NVME_WRITE;
		cmd->flags = td->o.sync_io ? WEFT_NVME_FUA : 0;
	}
	return true;
}

static enum fio_q_status weft_queue(struct thread_data *td, struct io_u *io_u)
{
	struct job *job = td->io_ops_data;
	struct weft_nvme_command *cmd = &job->commands[job->queued_cnt];
	struct flight *flight = job->free_flights; /* fio has no more than @depth under way */

	fio_ro_check(td, io_u);
	io_u->mmap_data = NULL;
	if (job->lost) {
		io_u->error = (unsigned)job->lost;
		return FIO_Q_COMPLETED;
	}
	if (!command_of(job, td, io_u, cmd)) {
		io_u->error = EINVAL;
		return FIO_Q_COMPLETED;
	}
	cmd->arg = flight;
	job->free_flights = flight->next;
	flight->io_u = io_u;
	job->busy_cnt++;
	job->queued_cnt++;
	return FIO_Q_QUEUED;
}

/* A command is no longer under way: returns what it was for. */
static struct io_u *flight_end(struct job *job, struct flight *flight)
{
	struct io_u *io_u = flight->io_u;

	flight->io_u = NULL;
	flight->next = job->free_flights;
	job->free_flights = flight;
	job->busy_cnt--;
	return io_u;
}

/* The @cnt first queued commands have begun. */
static void begun(struct thread_data *td, struct job *job, uint32_t cnt)
{
	struct timespec now;
	uint32_t i;

	if (fio_fill_issue_time(td)) {
		fio_gettime(&now, NULL);
		for (i = 0; i < cnt; i++) {
			struct io_u *io_u = ((struct flight *)job->commands[i].arg)->io_u;

			io_u->issue_time = now;
			io_u_queued(td, io_u);
		}
		if (td->o.read_iolog_file)
			td->last_issue = now;
	}
	io_u_mark_submit(td, cnt);
}

static void dequeue(struct job *job, uint32_t cnt)
{
	job->queued_cnt -= cnt;
	memmove(job->commands, job->commands + cnt, job->queued_cnt * sizeof(*job->commands));
}

/* The first queued command cannot begin. */
static void refused(struct job *job, int err)
{
	struct io_u *io_u = flight_end(job, job->commands[0].arg);

	io_u->error = (unsigned)err;
	job->failed[job->failed_cnt++] = io_u;
	dequeue(job, 1);
}

/* Nothing more comes from the device: all that was under way has failed. */
static void lose(struct job *job, int err)
{
	uint32_t i;

	if (job->lost)
		return;
	job->lost = err;
	job->queued_cnt = 0;
	for (i = 0; i < job->depth; i++) {
		struct io_u *io_u = job->flights[i].io_u;

		if (!io_u)
			continue;
		flight_end(job, &job->flights[i]);
		io_u->error = (unsigned)err;
		job->failed[job->failed_cnt++] = io_u;
	}
	log_err("weft: the lease has ended\n");
}

static int weft_commit(struct thread_data *td)
{
	struct job *job = td->io_ops_data;
	ssize_t ret;

	while (job->queued_cnt) {
		ret = weft_nvme_submit(job->qp, job->commands, job->queued_cnt);
		if (ret > 0) {
			begun(td, job, (uint32_t)ret);
			dequeue(job, (uint32_t)ret);
		} else if (ret == -ESTALE) {
			lose(job, ESTALE);
		} else if (ret == -EAGAIN || ret == 0) {
			break; /* getevents() makes room, and calls this again */
		} else {
			refused(job, (int)-ret);
		}
	}
	return 0;
}

/* Adds what could not begin to @cnt events. */
static uint32_t take_failed(struct job *job, uint32_t cnt, uint32_t max)
{
	while (cnt < max && job->failed_cnt)
		job->events[cnt++] = job->failed[--job->failed_cnt];
	return cnt;
}

static uint32_t take_done(struct job *job, uint32_t cnt, ssize_t done_cnt)
{
	ssize_t i;

	for (i = 0; i < done_cnt; i++) {
		struct io_u *io_u = flight_end(job, job->done[i].arg);

		io_u->error = (unsigned)nvme_to_errno(&job->done[i]);
		if (job->done[i].status == -EIO)
			io_u->mmap_data = (void *)(uintptr_t)job->done[i].nvme;
		job->events[cnt++] = io_u;
	}
	return cnt;
}

static int ms_of(const struct timespec *t)
{
	return t ? (int)(t->tv_sec * 1000 + (t->tv_nsec + 999999) / 1000000) : -1;
}

static int weft_getevents(struct thread_data *td, unsigned int min, unsigned int max,
			  const struct timespec *t)
{
	struct job *job = td->io_ops_data;
	uint32_t cnt = 0;
	ssize_t ret;

	for (;;) {
		if (job->queued_cnt)
			weft_commit(td);
		cnt = take_failed(job, cnt, max);
		if (cnt == max || job->lost || job->busy_cnt == job->queued_cnt)
			break;
		if (cnt >= min)
			ret = weft_nvme_poll(job->qp, job->done, max - cnt);
		else
			ret = weft_nvme_wait(job->qp, job->done, max - cnt, ms_of(t));
		if (ret > 0)
			cnt = take_done(job, cnt, ret);
		else if (ret == -ESTALE)
			lose(job, ESTALE);
		else if (ret < 0 && ret != -EINTR && ret != -EAGAIN)
			lose(job, (int)-ret);
		else if (cnt >= min || (ret == 0 && t))
			break;
		if (ret > 0 && cnt >= min)
			break;
	}
	return (int)cnt;
}

static struct io_u *weft_event(struct thread_data *td, int event)
{
	const struct job *job = td->io_ops_data;

	return job->events[event];
}

static char *weft_errdetails(struct io_u *io_u)
{
	const unsigned status = (unsigned)(uintptr_t)io_u->mmap_data;
	char *text;

	if (!status)
		return strdup("weft: the device has not executed it");
	if (asprintf(&text, "weft: NVMe status: type %x, code %02x", status >> 8 & 7,
		     status & 0xff) < 0)
		return NULL;
	return text;
}

/* There is no file: what fio does to one is done. */
static int weft_file(struct thread_data *td, struct fio_file *file)
{
	return 0;
}

static struct fio_option options[] = {
	{
		.name = "lender",
		.lname = "lender",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, lender),
		.help = "Socket or host of the lender (default: WEFT_LENDER, WEFT_DIRECTORY, or this user's)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "device",
		.lname = "device",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, device),
		.help = "Name of the device, or its beginning (default: the first that is free)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "ticket",
		.lname = "ticket",
		.type = FIO_OPT_STR_STORE,
		.off1 = offsetof(struct options, ticket),
		.help = "Of a lease to use, instead of borrowing (default: WEFT_TICKET, if it is set)",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "nsid",
		.lname = "namespace",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct options, nsid),
		.help = "Number of the namespace",
		.def = "1",
		.minval = 1,
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "shared",
		.lname = "shared borrowing",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct options, shared),
		.help = "Whether other processes may borrow the device too",
		.def = "0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "blocking",
		.lname = "blocking queue pair",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct options, blocking),
		.help = "Whether to sleep until the device interrupts",
		.def = "0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "near_device",
		.lname = "queues near the device",
		.type = FIO_OPT_BOOL,
		.off1 = offsetof(struct options, near_device),
		.help = "Whether queues are in the device's memory",
		.def = "0",
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = "lease_ms",
		.lname = "milliseconds of the lease",
		.type = FIO_OPT_INT,
		.off1 = offsetof(struct options, lease_ms),
		.help = "How long the device stays borrowed if the process no longer runs (default: 10 seconds)",
		.def = "0",
		.maxval = WEFT_LEASE_MS_MAX,
		.category = FIO_OPT_C_ENGINE,
		.group = FIO_OPT_G_INVALID,
	},
	{
		.name = NULL,
	},
};

/* fio looks for it by this name. */
struct ioengine_ops ioengine = {
	.name = "weft",
	.version = FIO_IOOPS_VERSION,
	.flags = FIO_RAWIO | FIO_NOEXTEND | FIO_NODISKUTIL | FIO_MEMALIGN |
		 FIO_ASYNCIO_SETS_ISSUE_TIME,
	.setup = weft_setup,
	.init = weft_init,
	.post_init = weft_post_init,
	.queue = weft_queue,
	.commit = weft_commit,
	.getevents = weft_getevents,
	.event = weft_event,
	.errdetails = weft_errdetails,
	.cleanup = weft_cleanup,
	.open_file = weft_file,
	.close_file = weft_file,
	.invalidate = weft_file,
	.unlink_file = weft_file,
	.iomem_alloc = weft_iomem_alloc,
	.iomem_free = weft_iomem_free,
	.option_struct_size = sizeof(struct options),
	.options = options,
};
