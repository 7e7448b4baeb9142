// What an engine does with what it finds at start: leftovers of its own instance and resources of others (reliability F6),
// a host after a power loss (F9), and an unreadable record.

import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { MachineRef, MachineStatus } from '../../src/engine/engine.ts'
import { EngineError } from '../../src/engine/errors.ts'
import { askToRemove, listAside } from '../../src/engine/oci/lifecycle/aside.ts'
import { createChild } from '../../src/engine/oci/kernel/cgroup-children.ts'
import { namesOf } from '../../src/engine/oci/network/names.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { mountOverlay } from '../../src/engine/oci/kernel/syscalls.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { clearHost } from '../support/power-cut.ts'
import { openEngineProcess } from './engine-process.ts'
import { createHostSuite, type HostEngine, openHostEngine } from './host-engine.ts'
import { eventually, kindOf } from './suite.ts'
import { isDeep } from '../support/part-of.ts'

let wishes: string
let withoutInotify = false
/** Small enough for an unattended log to fill up within a second. */
const runtimes = { ...driverDefaults, logFileBytes: 8 * 1024 * 1024 }
let host: HostEngine
const suite = createHostSuite('runc', () => host)

beforeAll(async () => {
  wishes = await mkdtemp('/var/tmp/berth-wishes-')
  // In a separate process, so that its children are not ours when it ends.
  host = await openHostEngine({ isolation: 'runc', runtimes }, (options) =>
    openEngineProcess(options, wishes, { withoutInotify }),
  )
  await suite.open()
})
afterEach(async () => await host.expectAsListed())
afterAll(async () => {
  await suite.close()
  await rm(wishes, { recursive: true })
})

const sh = async (script: string) => await runOrThrow('sh', ['-euc', script], { timeoutMs: 20_000 })
const ids = async () => (await host.engine().list()).map(({ id }) => id)

describe('at start, the engine', () => {
  const started: ChildProcess[] = []
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
  })

  /** Starts a process that runs until it is killed; `names` appear in its command line. */
  function linger(...names: string[]): number {
    const child = spawn('sh', ['-c', 'while :; do sleep 60; done', ...names], {
      detached: true,
      stdio: 'ignore',
    })
    started.push(child)
    return child.pid ?? 0
  }

  async function makeGroups(parent: string, name: string, pid: number): Promise<string[]> {
    const made: string[] = []
    for (const tree of Object.values(host.cgroups.trees)) {
      const directory = join(tree, parent, name)
      await mkdir(directory, { recursive: true })
      made.push(directory)
      if (tree === host.cgroups.main) await writeFile(join(directory, 'cgroup.procs'), String(pid))
    }
    return made
  }

  /** Creates one leftover of each kind that a crash can leave, for an unknown run and machine. */
  async function plant(id: string): Promise<{ pids: number[]; paths: string[]; kept: string[] }> {
    const run = host.paths.run(id, 7)
    const machine = host.paths.machine(id)
    const inGroup = linger()
    const monitor = linger('conmon', '--cid', run.container)
    const groups = await makeGroups(host.cgroups.parent, run.container, inGroup)
    await mkdir(run.rootfs, { recursive: true })
    await writeFile(run.monitorPid, String(monitor))
    await writeFile(run.config, 'a secret')
    // Like conmon, which first writes to a temporary name.
    const exits = [run.exit, `${run.exit}.CRI5Y3`]
    for (const exit of exits) await writeFile(exit, '0')
    const runc = join(host.paths.runtimeRoot('runc'), run.container)
    await mkdir(runc, { recursive: true })
    await writeFile(join(runc, 'state.json'), '{}')
    const runsc = join(host.paths.runtimeRoot('runsc'), `${run.container}_sandbox:${run.container}.state`)
    await mkdir(host.paths.runtimeRoot('runsc'), { recursive: true })
    await writeFile(runsc, '{}')
    for (const path of [machine.disk, machine.volume]) await sh(`btrfs --quiet subvolume create ${path}`)
    await mkdir(join(machine.disk, 'upper'))
    await mkdir(join(machine.disk, 'work'))
    mountOverlay(run.rootfs, {
      lower: host.paths.helper,
      upper: join(machine.disk, 'upper'),
      work: join(machine.disk, 'work'),
    })
    // A second machine whose creation was interrupted before it had a record.
    const unfinished = host.paths.machine(`${id}0`)
    await mkdir(unfinished.logs, { recursive: true })
    await sh(`btrfs --quiet subvolume create ${unfinished.disk}`)
    const { namespacePrefix, interfacePrefix, table } = namesOf(host.instance)
    await sh(`ip netns add ${namespacePrefix}990
      ip link add ${interfacePrefix}990 type veth peer name eth0 netns ${namespacePrefix}990
      nft add element inet ${table} machines { "${interfacePrefix}990" . 10.9.9.9 }`)
    return {
      pids: [inGroup, monitor],
      paths: [
        ...groups,
        run.dir,
        ...exits,
        runc,
        runsc,
        unfinished.dir,
        unfinished.disk,
        `/run/netns/${namespacePrefix}990`,
        `/sys/class/net/${interfacePrefix}990`,
      ],
      kept: [machine.disk, machine.volume],
    }
  }

  /** Creates the same for another instance, and things that only look like ours. */
  async function plantOthers(
    id: string,
  ): Promise<{ pids: number[]; paths: string[]; remove: () => Promise<void> }> {
    const otherId = host.instance.id.replace(/.$/, (last) => (last === 'x' ? 'y' : 'x'))
    const other = namesOf({ id: otherId, subnet: host.instance.subnet })
    const container = `${id}-7`
    const inGroup = linger()
    const looksAlike = linger('conmon', '--cid', container)
    const groups = await makeGroups(`berth-${otherId}`, container, inGroup)
    const directory = `/run/berth/${otherId}/runs/${container}`
    await mkdir(directory, { recursive: true })
    await sh(`ip netns add ${other.namespacePrefix}1
      ip link add ${other.interfacePrefix}1 type veth peer name eth0 netns ${other.namespacePrefix}1
      nft add table inet ${other.table}`)
    return {
      pids: [inGroup, looksAlike],
      paths: [
        ...groups,
        directory,
        `/run/netns/${other.namespacePrefix}1`,
        `/sys/class/net/${other.interfacePrefix}1`,
      ],
      remove: async () => {
        await sh(`nft delete table inet ${other.table}; ip netns del ${other.namespacePrefix}1`)
        await rm(`/run/berth/${otherId}`, { recursive: true })
        process.kill(inGroup, 'SIGKILL')
        for (const group of groups) {
          await sh(`until rmdir ${group}; do sleep 0.1; done`)
          await rmdir(join(group, '..'))
        }
      },
    }
  }

  it('removes leftovers of its own instance, counts them, and touches nothing else', async () => {
    const live = await suite.running()
    const frozen = await suite.running()
    await host.engine().freeze(frozen)
    await suite.sh(live, 'echo x > /dev/shm/mark')
    const others = await plantOthers('unit_aaaa1')
    try {
      let planted = { pids: [0], paths: [''], kept: [''] }
      await suite.reopen(async () => {
        planted = await plant('unit_aaaa1')
        for (const path of [...planted.paths, ...planted.kept])
          expect([path, existsSync(path)]).toEqual([path, true])
      })
      const report = await host.engine().recover(await ids())
      // The run, the incomplete machine and the network interface.
      expect(report).toMatchObject({ adopted: 2, removed: 3, lost: 0 })
      expect(await host.engine().recover(await ids())).toMatchObject({ removed: 0 })
      for (const path of planted.paths) expect([path, existsSync(path)]).toEqual([path, false])
      // A disk without a record is put aside, as an operator who restored a pool would want.
      expect(await listAside(host.paths)).toMatchObject([{ id: 'unit_aaaa1', reason: 'no-record' }])
      for (const path of planted.kept) expect([path, existsSync(path)]).toEqual([path, true])
      await host.engine().destroy('unit_aaaa1')
      expect(await listAside(host.paths)).toEqual([])
      for (const path of planted.kept) expect([path, existsSync(path)]).toEqual([path, false])
      for (const pid of planted.pids) expect([pid, await isRunning(pid)]).toEqual([pid, false])
      for (const path of others.paths) expect([path, existsSync(path)]).toEqual([path, true])
      for (const pid of others.pids) expect([pid, await isRunning(pid)]).toEqual([pid, true])
      expect((await suite.sh(live, 'cat /dev/shm/mark')).stdout).toBe('x\n')
      expect(await suite.status(frozen.id)).toMatchObject({ state: 'running', frozen: true })
      await host.expectAsListed()
    } finally {
      await others.remove()
    }
  })

  it('ends commands of an earlier engine, which would otherwise run without a timeout', async () => {
    const ref = await suite.running()
    await suite.sh(ref, 'setsid sleep 654 >/dev/null 2>&1 &')
    const abandoned = kindOf(suite.sh(ref, 'sleep 321', { timeoutMs: 60_000 }))
    await eventually(async () => ((await commandsIn(ref)).includes('sleep 321') ? true : null))
    await writeFile(join(wishes, 'engine.freeze.before'), 'crash')
    expect(await kindOf(host.engine().freeze(ref))).toBe('engine_away')
    expect(await abandoned).toBe('engine_away')
    await suite.reopen()
    await eventually(async () => ((await commandsIn(ref)).includes('sleep 321') ? null : true))
    expect(await commandsIn(ref)).toContain('sleep 654')
    await host.engine().destroy(ref.id)
  })

  it('removes the cgroup of a finished command', async () => {
    const ref = await suite.running()
    await suite.reopen(async () => {
      createChild(host.cgroups, host.paths.run(ref.id, ref.generation).container, 'exec-over')
    })
    await host.expectAsListed()
    await host.engine().destroy(ref.id)
  })

  const commandsIn = async (ref: MachineRef) =>
    (await suite.sh(ref, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')).stdout
})

describe('a host after a power loss', () => {
  it('has firewall rules before any machine starts, keeps disks and addresses, and reports lost runs', async () => {
    const volume = { mount: '/data', gb: 1 }
    const running = await suite.running({}, { volume })
    const frozen = await suite.running({}, { volume, isolation: 'gvisor' })
    const stopped = await suite.running()
    const created = await suite.create()
    for (const ref of [running, frozen]) await suite.sh(ref, 'echo kept | tee /root/kept > /data/kept; sync')
    await host.engine().freeze(frozen)
    await host.engine().stop(stopped, 0)
    const before = await host.engine().list()

    await suite.reopen(async () => {
      await clearHost(host.instance, host.options.dataDir)
      // A loop device without a mount must not make the pool appear twice.
      await sh(`losetup --find ${host.paths.poolFile}`)
    })
    // The table already contains every machine's address although none is running.
    await host.expectAsListed()
    const states: Record<string, MachineStatus['state']> = {
      [running.id]: 'lost',
      [frozen.id]: 'lost',
      [stopped.id]: 'exited',
      [created.id]: 'created',
    }
    const now = await host.engine().list()
    for (const { id, address } of before.filter((machine) => machine.id in states)) {
      expect(now.find((machine) => machine.id === id)).toMatchObject({
        state: states[id],
        frozen: false,
        address,
      })
    }
    expect(new Set(now.map(({ address }) => address)).size).toBe(now.length)
    const told: MachineStatus[] = []
    const abort = new AbortController()
    const watching = host.engine().watchExits((status) => void told.push(status), abort.signal)
    const isTold = ({ id }: MachineRef) => told.some((status) => status.id === id && status.state === 'lost')
    await eventually(async () => (isTold(running) && isTold(frozen) ? true : null))
    abort.abort()
    await watching

    expect(await host.engine().recover(await ids())).toMatchObject({ adopted: 0, lost: 2 })
    for (const ref of [running, frozen]) {
      expect(await kindOf(suite.start(ref))).toBe('run_lost')
      const next = await suite.start({ id: ref.id, generation: 2 })
      expect((await suite.sh(next, 'cat /root/kept /data/kept')).stdout).toBe('kept\nkept\n')
    }
    await suite.start({ id: stopped.id, generation: 2 })
    await suite.start({ id: created.id, generation: 1 })
    const addresses = new Set((await host.engine().list()).map(({ address }) => address))
    const newcomer = await suite.create()
    expect(addresses).not.toContain((await suite.status(newcomer.id))?.address)
  })
})

// Reliability I20.
describe('the log of a machine without an engine', () => {
  it('stays within its size limit and can be read by the next engine', async () => {
    const line = 'x'.repeat(1000)
    const flood = `until [ -f /root/go ]; do sleep 0.1; done; yes ${line} | head -n 37000; echo finished; exec sleep infinity`
    const ref = await suite.running({ entrypoint: ['bash', '-c', flood], cmd: [] })
    const { logs } = host.paths.machine(ref.id)
    let largest = 0
    await host.engine().writeFile(ref, '/root/go', Buffer.from(''))
    await suite.reopen(async () => {
      await eventually(async () => {
        const names = await readdir(logs)
        const sizes = names.map((name) => statSync(join(logs, name), { throwIfNoEntry: false })?.size ?? 0)
        largest = Math.max(
          largest,
          sizes.reduce((sum, size) => sum + size, 0),
        )
        return (await sh(`tail -n 1 ${logs}/1.log || true`)).endsWith(' finished\n') ? true : null
      }, 120_000)
    })
    expect(largest).toBeLessThan(32 * 1024 * 1024)
    const read = await host.engine().logs(ref.id, { after: null, since: null, limit: 10 })
    expect(read.map(({ text }) => text)).toEqual([...Array<string>(9).fill(line), 'finished'])
  })
})

describe('a host without free inotify instances', () => {
  it('still lets the engine start, adopt and start machines of both classes, and see them end', async () => {
    const untilEnd = ['bash', '-c', 'while [ ! -f /root/end ]; do sleep 0.1; done; exit 21']
    const adopted = await suite.running({ entrypoint: untilEnd, cmd: [] })
    withoutInotify = true
    await suite.reopen()
    withoutInotify = false
    // Machines started by an engine without inotify have none either.
    const started = await suite.running({ entrypoint: untilEnd, cmd: [] })
    const tryInotify = `syscall(${process.arch === 'x64' ? 294 : 26}, 0); print $! + 0`
    expect((await suite.exec(started, ['perl', '-e', tryInotify])).stdout).toBe(
      String(constants.errno.EMFILE),
    )

    const sandboxed = await suite.running({ entrypoint: untilEnd, cmd: [] }, { isolation: 'gvisor' })
    for (const ref of [adopted, started, sandboxed]) {
      // The machine may end before the call returns.
      await host.engine().writeFile(ref, '/root/end', Buffer.from('')).catch(ignoreEnd)
      expect(await suite.exitOf(ref)).toMatchObject({ code: 21 })
    }
    await suite.reopen()
  })
})

describe('an unreadable record', () => {
  it.skipIf(!isDeep)(
    'does not delete the disk, which is put aside once the machine is no longer wanted',
    async () => {
      const ref = await suite.running()
      await suite.sh(ref, 'echo kept > /root/kept')
      await host.engine().stop(ref, 0)
      const { record, disk } = host.paths.machine(ref.id)
      const good = await readFile(record, 'utf8')
      await suite.reopen(async () => await writeFile(record, good.slice(0, 40)))
      expect(await suite.status(ref.id)).toBeUndefined()
      await host.engine().recover([ref.id, ...(await ids())])
      expect(existsSync(disk)).toBe(true)

      await suite.reopen(async () => await writeFile(record, good))
      const next = await suite.start({ id: ref.id, generation: 2 })
      expect((await suite.sh(next, 'cat /root/kept')).stdout).toBe('kept\n')

      await suite.reopen(async () => await writeFile(record, ''))
      await host.engine().recover(await ids())
      expect(await listAside(host.paths)).toMatchObject([{ id: ref.id, reason: 'damaged' }])
      expect(existsSync(disk)).toBe(true)
      await askToRemove(host.paths, ref.id)
      await eventually(async () => (existsSync(disk) ? null : true))
      // Its note is removed after the disk.
      await eventually(async () => ((await listAside(host.paths)).length === 0 ? true : null))
    },
  )
})

function ignoreEnd(error: unknown): void {
  if (!(error instanceof EngineError && error.kind === 'not_running')) throw error
}

/** Returns whether a process is running; a zombie is not. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return /^\d+ \(.*\) [^ZX]/.test(stat)
}
