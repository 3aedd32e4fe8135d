# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The jobs of the interface in the kernel (docs/kofi.md): over each provider, on two machines, on the kernel
that looks for errors. jobs.py has them among the others; job.py explains the words."""
import dataclasses
import os

from job import Command, DebianModule, Job, Machine, Module, Wire

# They load and unload their modules so often; 'make soak-kofi' has them do so a thousand times.
ROUNDS = os.environ.get('WEFT_KOFI_ROUNDS')
# Those on a kernel that looks for errors
DEBUG_ROUNDS = 10

# The allocator looks for bytes that are written outside of what is allocated, or after it was freed.
SLUB = 'slub_debug=FZP,kmalloc-*'


def modules(*names):
    """The interface in the kernel, modules of ours over it, and those that try it."""
    return (Module('kofi', 'kernel', 'scripts/kofi-source'), *(Module(name, 'kernel') for name in names),
            Module('kofi_test', 'tests/vm/kofi'))


def rounds(provider, count, seconds):
    """Loading, running and unloading, each of which takes so many seconds."""
    count = int(ROUNDS or count)
    return Command(f'{count} rounds of loading, running and unloading leave nothing',
                   f'OVER={provider} ./kofi rounds {count}', seconds=60 + seconds * count)


def over_provider(name, machine):
    """A job of one machine, whose time is that of its commands at most."""
    return Job(name, seconds=60 + sum(command.seconds for command in machine.commands), machines=(machine,))


def kofi(count):
    """A consumer over the provider within one machine."""
    return over_provider('kofi', Machine(kernel=SLUB, modules=modules('kofi_loop'), commands=(
        Command('messages, tagged ones, accesses', './kofi run round'),
        Command('the log names a refused access without its address', './kofi told'),
        Command('bad registrations are refused', './kofi run refusals'),
        Command('a module in use is not unloaded', './kofi refused'),
        Command('counters show what is in use', './kofi counters'),
        Command('threads sleep until they are answered', './kofi wake sleep'),
        Command('a queue calls when it has something', './kofi wake called'),
        Command("Lustre's first calls are answered, or refused", './kofi lnet'),
        Command('interrupts wake who sleeps', './kofi rings', seconds=90),
        rounds('loop', count, 1),
    )))


def kofi_sockets(count):
    """The provider over TCP: a consumer in the kernel, with another one and with processes."""
    return over_provider('kofi-sockets', Machine(kernel=SLUB, modules=modules('kofi_sockets'), commands=(
        Command('messages, tagged ones, accesses within the kernel', 'OVER=sockets ./kofi run round'),
        Command('a process calls the kernel', './sockets meet rdm kernel process'),
        Command('the kernel calls a process', './sockets meet rdm process kernel'),
        Command('the kernel calls the kernel', './sockets meet rdm kernel kernel'),
        Command('over IPv6', './sockets meet rdm kernel process ::1'),
        Command('a process connects to the kernel', './sockets meet msg kernel process'),
        Command('the kernel connects to a process', './sockets meet msg process kernel'),
        Command('the kernel connects to the kernel', './sockets meet msg kernel kernel'),
        Command('a process dies', './sockets dies rdm kernel'),
        Command('a connected process dies', './sockets dies msg kernel'),
        Command('garbage at the port', './sockets garbage 300', seconds=120),
        Command('strangers who stay are few', './sockets full 20', seconds=120),
        Command('secrets of a keyring', './sockets secret', seconds=120),
        Command('a module in use is not unloaded', './sockets refused'),
        Command('rounds of loading, meeting and unloading leave nothing', './sockets rounds 10', seconds=120),
        rounds('sockets', count, 2),
    )))


def kofi_rds():
    """The provider over RDS within a machine, whose RDS is over TCP: in the kernel and in processes."""
    sockets = 'OVER=rds ./sockets'
    return over_provider('kofi-rds', Machine(kernel=SLUB, modules=('dummy', 'rds_tcp', *modules('kofi_rds')), commands=(
        Command('has an address',
                'ip link add rds0 type dummy && ip addr add 10.7.0.1/24 dev rds0 && ip link set rds0 up'),
        Command('messages, tagged ones, accesses', 'OVER=rds ./kofi run round'),
        Command('payload of all lengths', f'{sockets} lengths'),
        Command('a process calls the kernel', f'{sockets} meet rdm kernel process'),
        Command('the kernel calls a process', f'{sockets} meet rdm process kernel'),
        Command('the kernel calls the kernel', f'{sockets} meet rdm kernel kernel'),
        Command('a process calls a process', f'{sockets} meet rdm process process'),
        Command('at an address of an interface', f'{sockets} meet rdm kernel process 10.7.0.1'),
        Command('over IPv6', f'{sockets} meet rdm process kernel ::1'),
        Command('a process dies, the kernel is told', f'{sockets} dies rdm kernel', seconds=120),
        Command('a process dies, another one is told', f'{sockets} dies rdm process', seconds=120),
        Command('strangers, and peers that do wrong', f'{sockets} strangers 300 kernel', seconds=120),
        Command('strangers to a process', f'{sockets} strangers 300 process', seconds=120),
        Command('a module in use is not unloaded', f'{sockets} refused'),
        Command('rounds of loading, meeting and unloading leave nothing', f'{sockets} rounds 10', seconds=120),
    )))


def kofi_rds_figures():
    """What messages between two ends in the kernel take over RDS and over TCP."""
    return over_provider('kofi-rds-figures', Machine(modules=('rds_tcp', *modules('kofi_rds')), commands=(
        Command('8 bytes, and 64 KiB, over rds and sockets', 'OVER=rds ./sockets figures 5',
                seconds=300, figures=True),
    )))


def kofi_rds_two():
    """Kernels of two machines meet over RDS, then one and a process of the other; and then they lose each other."""
    def half(name, number, role, other):
        end = 'OVER=rds ./sockets end'
        return Machine(name, memory=384, devices=(Wire('wire'),),
            modules=('virtio_net', 'rds_tcp', *modules('kofi_rds')), commands=(
                Command('has an address', f'ip addr add 10.0.0.{number}/24 dev eth0 && ip link set eth0 up'),
                Command('meets the other kernel',
                        f'./meet addressed && PORT=7100 {end} kernel {role} closes 10.0.0.1', seconds=100),
                Command('the kernel of a meets a process of b',
                        f'PORT=7101 {end} {other} {role} closes 10.0.0.1', seconds=100),
                Command('says that the other one is dead',
                        'rmmod kofi_talk && ./meet again && { (until dmesg | grep "is waited for"; do sleep 1; done; '
                        'sleep 2; ip link set eth0 down) & '
                        f'PORT=7102 PATIENCE=20000 {end} kernel {role} outlives 10.0.0.1; }}', seconds=150)))
    machines = half('a', 1, 'listen', 'kernel'), half('b', 2, 'call', 'process')
    return Job('kofi-rds-two', seconds=340, machines=machines)


def kofi_ibverbs(name, kind, count, *drivers):
    """The same over a kind of RDMA devices, which are Linux' own over an interface that leads nowhere."""
    return over_provider(name, Machine(
        kernel=SLUB, modules=('dummy', 'rdma_cm', *drivers, *modules('kofi_ibverbs')), commands=(
            Command('a device', f'./rdma {kind}'),
            Command('messages, tagged ones, accesses', 'OVER=ibverbs ./kofi run round'),
            Command('payload of all lengths', './rdma test lengths'),
            Command('connections', './rdma test connections'),
            Command('a module in use is not unloaded', 'OVER=ibverbs ./kofi refused'),
            Command('a device is removed while messages are under way', f'./rdma lost {kind}'),
            rounds('ibverbs', count, 3),
        )))


def kofi_rxe(count):
    return kofi_ibverbs('kofi-ibverbs', 'rxe', count, 'rdma_rxe')


def kofi_siw(count):
    return kofi_ibverbs('kofi-iwarp', 'siw', count, 'libcrc32c', 'crc32c_generic',
                        DebianModule('siw', 'drivers/infiniband/sw/siw', option='CONFIG_RDMA_SIW'))


def kofi_two(provider, *device):
    """Kernels of two machines over a provider. The second one ends without a word."""
    def half(name, number, does, end):
        return Machine(name, memory=384, devices=(Wire('wire'),),
            modules=('virtio_net', 'rdma_rxe', 'rdma_cm', *modules(f'kofi_{provider}')), commands=(
                Command('has an address', f'ip addr add 10.0.0.{number}/24 dev eth0 && ip link set eth0 up'),
                *device,
                Command('messages, accesses, connections that are rejected, accepted and shut down',
                        f'./meet there && OVER={provider} ./two {does} rdm msg', seconds=120),
                end))
    return Job(f'kofi-two-{provider}', seconds=400, machines=(
        half('a', 1, 'listen',
             Command('hears that the other machine is gone', f'OVER={provider} ./two outlives', seconds=150)),
        half('b', 2, 'call',
             Command('ends without a word', f'OVER={provider} ./two dies', seconds=150, dies=True))))


def kofi_post(name, counts, command):
    """What a send takes over the same without kofi."""
    return Job(name, seconds=200, machines=(Machine(cpus=1, counts=counts,
        modules=('dummy', 'rdma_rxe', 'rdma_cm', *modules('kofi_ibverbs')[:-1],
                 Module('kofi_post_test', 'tests/vm/kofi')),
        commands=(Command('a device', './rdma rxe'), command)),))


def debug(job, *more):
    """A job of one machine, and more commands, on the kernel that looks for errors, which takes some times as
    long. Nothing is lost by all of it."""
    machine = job.machines[0]
    commands = (Command('what was lost before is forgotten', './kofi forget', seconds=240),
                *(dataclasses.replace(command, seconds=4 * command.seconds) for command in machine.commands),
                *more, Command('nothing was lost', './kofi clean', seconds=240))
    # It has the modules that Debian's leaves out.
    names = tuple(module.name if isinstance(module, DebianModule) else module for module in machine.modules)
    debugging = dataclasses.replace(machine, memory=1024, kernel='', modules=names, commands=commands)
    return dataclasses.replace(over_provider(f'{job.name}-debug', debugging), debugging=True)


def failing(provider, storms):
    return (Command('each allocation fails in its turn', f'OVER={provider} ./kofi failing', seconds=1200),
            Command("allocations of others' threads fail", f'OVER={provider} ./kofi storm {storms}',
                    seconds=600))


def finds(name, said, *commands):
    """An error on purpose, the last command's, of which that kernel has to say this."""
    return Job(f'finds-{name.replace(" ", "-")}', seconds=600, debugging=True,
        wanted=('OK',) * len(commands) + (f'FAIL: {said}',), machines=(
            Machine(memory=1024, modules=modules('kofi_loop'), commands=commands),))


def stops(name, said):
    """One that ends the machine."""
    return finds(name, said, Command(f'an error on purpose, {name}', f"./kofi bug '{name}'; sleep 1000",
                                     seconds=1000))


JOBS = (
    kofi(30),
    kofi_sockets(20),
    kofi_rds(),
    kofi_rds_figures(),
    kofi_rxe(20),
    kofi_siw(20),
    kofi_rds_two(),
    kofi_two('sockets'),
    kofi_two('ibverbs', Command('a device', './rdma rxe eth0')),

    kofi_post('kofi-post', True,
              Command('a send takes at most 1.3 of the instructions of ib_post_send', './rdma post 130',
                      figures=True)),
    # Figures, of which none fails
    kofi_post('kofi-post-times', False, Command('the time that both take, in turns', './rdma times 5',
                                                   figures=True)),

    # make soak
    debug(kofi(DEBUG_ROUNDS), *failing('loop', 100)),
    debug(kofi_sockets(DEBUG_ROUNDS), *failing('sockets', 50)),
    debug(kofi_rds(), *failing('rds', 50)),
    # Without failing allocations: rxe of Linux 6.1 ends a queue pair that it could not make by a lock that it has not.
    debug(kofi_rxe(DEBUG_ROUNDS)),
    # One after the other alone: siw of Linux 6.1 takes a socket's callback lock in a process without keeping softirqs out,
    # of which lockdep tells once a listener ends with connections that nobody has taken, as they do in a storm.
    debug(kofi_siw(DEBUG_ROUNDS), failing('ibverbs', 50)[0]),
    stops('use after free', 'BUG: KASAN: '),
    stops('sleep', 'BUG: sleeping function called from invalid context'),
    stops('inversion', 'WARNING: possible circular locking dependency detected'),
    finds('leak', 'unreferenced object',
          Command('what was lost before is forgotten', './kofi forget', seconds=240),
          Command('an error on purpose, a leak', './kofi bug leak'),
          Command('nothing was lost', './kofi clean', seconds=240)),
)
