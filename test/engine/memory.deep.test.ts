// Memory checkpoints (reliability F10, F12, F13, I22): a run continues from its memory if possible, and otherwise from its
// whole disk.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Image, MachineRef, RunSpec } from '../../src/engine/engine.ts'
import { criuPrograms } from '../../src/engine/oci/checkpoint/criu.ts'
import { openStore } from '../../src/engine/oci/images/store.ts'
import type { OciEngine, OciOptions } from '../../src/engine/oci/oci-engine.ts'
import { driverDefaults } from '../../src/engine/oci/runtime/driver.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { runOrThrow } from '../../src/lib/process.ts'
import { hasCriu } from '../support/criu.ts'
import { memoryClaims } from './claims/memory.ts'
import { memoryCommandClaims } from './claims/memory-commands.ts'
import { openEngineProcess } from './engine-process.ts'
import { createHostSuite, type HostEngine, IMAGES_DIR, openHostEngine } from './host-engine.ts'
import { eventually, kindOf } from './suite.ts'

/** Counts in memory and prints each number; `MB` sets the amount of memory to save. */
const counting = {
  entrypoint: [
    'perl',
    '-e',
    '$| = 1; my $x = "x" x ($ENV{MB} << 20); my $n = 0; while (1) { $n++; print "$n\n"; select undef, undef, undef, 0.05 }',
  ],
  cmd: [],
  env: { MB: '10' },
}

type Server = { image: string; run?: Partial<RunSpec>; write: string; read: string; kept: string }

/** A web server that returns the number of requests so far, each handled in its own thread. */
const COUNTING_WEB_SERVER = `
import http.server, socketserver
class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Handler.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(Handler.asked).encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
Server(("", 8000), Handler).serve_forever()
`
const ASK_WEB_SERVER =
  'python3 -c "import urllib.request as r; print(r.urlopen(\'http://127.0.0.1:8000\', timeout=5).read().decode())"'

type Manifest = { madeWith: string; boot: string; files: Record<string, { bytes: number }> }

/** An engine for a group of tests. After each test, the host must match what the engine lists. */
function withEngine(
  overrides: () => Partial<OciOptions> = () => ({}),
  open?: (options: OciOptions) => Promise<OciEngine>,
) {
  let host: HostEngine
  const suite = createHostSuite('runc', () => host)
  beforeAll(async () => {
    host = await openHostEngine({ isolation: 'runc', ...overrides() }, open)
    await suite.open()
  })
  afterEach(async () => await host.expectAsListed())
  afterAll(async () => await suite.close())

  const helpers = {
    suite,
    paths: (id: string) => host.paths.machine(id),

    running: async (env: Record<string, string> = {}): Promise<MachineRef> => {
      const ref = await suite.running({ ...counting, env: { ...counting.env, ...env } })
      await suite.sh(ref, 'echo kept > /root/kept')
      await suite.logged(ref.id, 3)
      return ref
    },

    next: async ({ id, generation }: MachineRef, env: Record<string, string> = {}) => {
      const run = { hostname: 'unit', searchDomain: 'stack.internal', files: [], egress: null }
      const ref = { id, generation: generation + 1 }
      const given = { ...run, ...counting, env: { ...counting.env, ...env } }
      const { resumed } = await suite.engine().start(ref, given)
      return { ref, resumed }
    },

    counts: async (id: string): Promise<number[]> =>
      (await suite.engine().logs(id, { after: null, since: null, limit: 500 })).map(({ text }) =>
        Number(text),
      ),

    /** Starts the next run and expects a cold start with an intact disk and no checkpoint left. */
    expectAnew: async (ref: MachineRef, env: Record<string, string> = {}): Promise<void> => {
      const { ref: again, resumed } = await helpers.next(ref, env)
      expect(resumed).toBe(false)
      expect((await suite.sh(again, 'cat /root/kept')).stdout).toBe('kept\n')
      await eventually(async () =>
        (await helpers.counts(ref.id)).filter((n) => n === 1).length === 2 ? true : null,
      )
      expect((await readdir(helpers.paths(ref.id).dir)).filter((name) => name.startsWith('memory'))).toEqual(
        [],
      )
    },
  }
  return helpers
}

/** A CRIU that can be told to die, hang or pause in the middle of its next dump or restore. */
async function makeMortalCriu() {
  const directory = await mkdtemp('/var/tmp/berth-mortal-')
  const [program, wish] = [join(directory, 'criu'), join(directory, 'wish')]
  const real = criuPrograms.find((path) => existsSync(path)) ?? 'criu'
  // It keeps a log of what it does in the directory it is started in.
  const script = `#!/bin/sh
[ "$1" = swrk ] && [ -e ${wish} ] || exec ${real} "$@"
read -r what signal pause < ${wish}
${real} "$@" &
while kill -0 $! 2>/dev/null; do
  if [ -s "$what.log" ]; then
    sleep 0.03
    kill -$signal $! && rm -f ${wish}
    [ -z "$pause" ] || { sleep $pause; kill -CONT $!; }
    break
  fi
  sleep 0.002
done
wait $!
`
  await writeFile(program, script, { mode: 0o755 })
  return {
    program,
    kill: async (what: 'dump' | 'restore') => await writeFile(wish, `${what} KILL\n`),
    hang: async (what: 'dump' | 'restore') => await writeFile(wish, `${what} STOP\n`),
    dawdle: async (what: 'dump' | 'restore') => await writeFile(wish, `${what} STOP 2\n`),
    /** Returns whether the fault has happened. */
    met: async () => !existsSync(wish),
    remove: async () => await rm(directory, { recursive: true }),
  }
}

describe.skipIf(!hasCriu)('memory checkpoints', () => {
  const { suite } = withEngine()
  memoryClaims(suite)
  memoryCommandClaims(suite)
})

describe.skipIf(!hasCriu)('the checkpoint of a machine', () => {
  const { suite, paths, running, next, counts, expectAnew } = withEngine()
  const engine = suite.engine

  const suspended = async (): Promise<{ ref: MachineRef; kept: string }> => {
    const ref = await running()
    expect(await engine().suspend(ref, 0)).toBe(true)
    return { ref, kept: paths(ref.id).memory }
  }
  const changeManifest = async (kept: string, change: (manifest: Manifest) => void) => {
    const path = join(kept, 'manifest.json')
    const manifest = JSON.parse(await readFile(path, 'utf8')) as Manifest
    change(manifest)
    await writeFile(path, JSON.stringify(manifest))
  }
  const damageOne = async (kept: string, damage: (bytes: Buffer) => Buffer) => {
    const path = join(kept, 'pages-1.img')
    await writeFile(path, damage(await readFile(path)))
  }

  const damages: [string, (kept: string) => Promise<void>][] = [
    [
      'a byte of it was written again',
      async (kept) => await damageOne(kept, (bytes) => bytes.fill(bytes[5000] ?? 1, 4000, 4001)),
    ],
    ['it is truncated', async (kept) => await truncate(join(kept, 'pages-1.img'), 4096)],
    ['a file is missing', async (kept) => await rm(join(kept, 'core-1.img'))],
    ['a file was added', async (kept) => await writeFile(join(kept, 'more.img'), 'more')],
    ['it has no manifest', async (kept) => await rm(join(kept, 'manifest.json'))],
    ['its manifest is truncated', async (kept) => await truncate(join(kept, 'manifest.json'), 100)],
    [
      'it is an empty file',
      async (kept) => await rm(kept, { recursive: true }).then(() => writeFile(kept, '')),
    ],
    [
      'another version of CRIU made it',
      async (kept) => await changeManifest(kept, (manifest) => (manifest.madeWith += ' old')),
    ],
    [
      'it is from an earlier boot',
      async (kept) => await changeManifest(kept, (manifest) => (manifest.boot = 'earlier')),
    ],
    [
      'it cannot be restored',
      async (kept) => {
        const garbage = Buffer.from('garbage')
        await writeFile(join(kept, 'core-1.img'), garbage)
        await changeManifest(kept, ({ files }) => {
          files['core-1.img'] = { bytes: garbage.length }
        })
      },
    ],
  ]
  it.each(damages)(
    'is not used if %s, and the machine starts cold with its whole disk',
    async (_what, damage) => {
      const { ref, kept } = await suspended()
      await damage(kept)
      await expectAnew(ref)
    },
  )

  it('is told of in the log of its machine if it could not be restored', async () => {
    const { ref, kept } = await suspended()
    await damages.at(-1)?.[1](kept)
    const again = await next(ref)
    const texts = (await engine().logs(again.ref.id, { limit: 100, after: null, since: null })).map(
      ({ text }) => text,
    )
    expect(texts.filter((text) => text.startsWith('berth: '))).toEqual([
      'berth: The saved memory is not used: it could not be restored. The unit starts from its disk.',
    ])
  })

  it('of a fork is not used if a byte of it was changed meanwhile, and the copy starts cold', async () => {
    const ref = await running()
    const { id } = suite.specOf({})
    const run = { hostname: 'copy', searchDomain: 's.internal', files: [], egress: null, ...counting }
    const [forked] = await engine().fork([{ id, source: ref, networkGroup: 1, run }])
    expect(forked?.copied).toBe('memory')
    await damageOne(paths(id).memory, (bytes) => bytes.fill(bytes[5000] ?? 1, 4000, 4001))
    expect(await engine().start({ id, generation: 1 }, run)).toMatchObject({ resumed: false })
    expect((await suite.sh({ id, generation: 1 }, 'cat /root/kept')).stdout).toBe('kept\n')
    await engine().destroy(id)
  })

  it('is not used by another machine', async () => {
    const [one, other] = [await suspended(), await suspended()]
    await rm(one.kept, { recursive: true })
    await cp(other.kept, one.kept, { recursive: true })
    await expectAnew(one.ref)
  })

  it('is not used a second time, even if a copy is put back', async () => {
    const { ref, kept } = await suspended()
    const copy = await mkdtemp('/var/tmp/berth-memory-')
    try {
      await cp(kept, copy, { recursive: true })
      const again = await next(ref)
      expect([again.resumed, existsSync(kept)]).toEqual([true, false])
      await engine().stop(again.ref, 0)
      await cp(copy, kept, { recursive: true })
      await expectAnew(again.ref)
    } finally {
      await rm(copy, { recursive: true })
    }
  })

  it('is removed with its machine, and at start if it is incomplete or from another boot', async () => {
    const gone = await suspended()
    await engine().destroy(gone.ref.id)
    expect(existsSync(gone.kept)).toBe(false)
    const [good, old] = [await suspended(), await suspended()]
    await suite.reopen(async () => {
      await changeManifest(old.kept, (manifest) => (manifest.boot = 'earlier'))
      await cp(good.kept, paths(good.ref.id).memoryNext, { recursive: true })
    })
    expect([good, old].map(({ kept }) => existsSync(kept))).toEqual([true, false])
    expect(existsSync(paths(good.ref.id).memoryNext)).toBe(false)
    expect((await next(good.ref)).resumed).toBe(true)
    await expectAnew(old.ref)
  })

  it('lets the program continue where it was suspended', async () => {
    const { ref } = await suspended()
    const last = (await counts(ref.id)).at(-1) ?? 0
    await next(ref)
    await eventually(async () => (((await counts(ref.id)).at(-1) ?? 0) > last ? true : null))
    const all = await counts(ref.id)
    expect(all).toEqual(all.map((_, i) => i + 1))
  })
})

describe.skipIf(!hasCriu)('a CRIU that dies', () => {
  let mortal: Awaited<ReturnType<typeof makeMortalCriu>>
  beforeAll(async () => {
    mortal = await makeMortalCriu()
  })

  const { suite, paths, running, counts, expectAnew } = withEngine(() => ({
    runtimes: { ...driverDefaults, criu: [mortal.program] },
  }))
  afterAll(async () => await mortal.remove())
  const engine = suite.engine
  const large = { MB: '150' }

  it('during a suspension ends the run like a stop', async () => {
    const ref = await running(large)
    await mortal.kill('dump')
    expect(await engine().suspend(ref, 0)).toBe(false)
    expect(await mortal.met()).toBe(true)
    expect(await suite.status(ref.id)).toMatchObject({ state: 'exited', frozen: false })
    await expectAnew(ref, large)
  })

  it('during a fork leaves the source unharmed and copies only its disk', async () => {
    const ref = await running(large)
    const { id } = suite.specOf({})
    const run = {
      hostname: 'copy',
      searchDomain: 's.internal',
      files: [],
      egress: null,
      ...counting,
      env: large,
    }
    await mortal.kill('dump')
    const forked = await engine().fork([{ id, source: ref, networkGroup: 1, run }])
    expect([await mortal.met(), forked[0]?.copied]).toEqual([true, 'disk'])
    expect(await engine().start({ id, generation: 1 }, run)).toMatchObject({ resumed: false })
    const last = (await counts(ref.id)).at(-1) ?? 0
    await eventually(async () => (((await counts(ref.id)).at(-1) ?? 0) > last ? true : null))
    expect(await suite.sh(ref, 'cat /root/kept')).toMatchObject({ stdout: 'kept\n' })
    await engine().destroy(id)
  })

  it('a CRIU that dies during a restore makes the machine start cold', async () => {
    const ref = await running(large)
    expect(await engine().suspend(ref, 0)).toBe(true)
    await mortal.kill('restore')
    await expectAnew(ref, large)
    expect(await mortal.met()).toBe(true)
  })

  it('a CRIU that hangs during a restore makes the machine start cold', async () => {
    const ref = await running(large)
    expect(await engine().suspend(ref, 0)).toBe(true)
    await mortal.hang('restore')
    await expectAnew(ref, large)
    expect(await mortal.met()).toBe(true)
  })

  it('a CRIU that hangs during a suspension does not delay a destroy', async () => {
    const ref = await running(large)
    await mortal.dawdle('dump')
    const suspension = engine()
      .suspend(ref, 60_000)
      .catch(() => false)
    await eventually(async () => ((await mortal.met()) ? true : null))
    await engine().destroy(ref.id)
    await suspension
    expect(await suite.status(ref.id)).toBeUndefined()
    expect(existsSync(paths(ref.id).dir)).toBe(false)
  })
})

/** Returns the same image with root as its user, because CRIU without CAP_SYS_RESOURCE can only dump processes of root. */
async function ofRoot({ digest, config }: Image): Promise<string> {
  const store = await openStore(IMAGES_DIR, systemClock)
  const identity = createHash('sha256').update(`${digest} of root`).digest('hex')
  const { image } = await store.make(
    { digest: `sha256:${identity}`, maker: 'a test' },
    async ({ rootfs }) => {
      const source = (await store.find(digest))?.rootfs ?? ''
      await runOrThrow('cp', ['--archive', '--link', source, rootfs], { timeoutMs: 60_000 })
      return { reference: 'berth.local/of-root:1', config: { ...config, user: 'root' } }
    },
    AbortSignal.timeout(120_000),
  )
  return image.digest
}

describe.skipIf(!hasCriu)('real servers', () => {
  const { suite } = withEngine()
  const engine = suite.engine
  const servers: [string, Server][] = [
    [
      'redis',
      {
        image: 'berth.local/redis:7',
        run: { entrypoint: ['redis-server'], cmd: [] },
        write: 'redis-cli set word remembered > /dev/null && redis-cli config set save "" > /dev/null',
        read: 'redis-cli get word',
        kept: 'remembered',
      },
    ],
    [
      'python’s web server',
      {
        image: 'berth.local/python:3.11',
        run: { entrypoint: ['python3', '-u', '-c', COUNTING_WEB_SERVER], cmd: [] },
        write: ASK_WEB_SERVER,
        read: ASK_WEB_SERVER,
        kept: '2',
      },
    ],
  ]

  it.each(servers)('continue after a suspension and in a fork: %s', async (_name, server) => {
    const imageDigest = await ofRoot(await engine().pull(server.image))
    const run = {
      hostname: 'unit',
      entrypoint: null,
      cmd: null,
      env: {},
      files: [],
      searchDomain: 's.internal',
      egress: null,
    }
    const given = { ...run, ...server.run }
    const size = { cpus: 1, memoryMb: 512, pids: 256, diskGb: 2 }
    const ref = await suite.running(given, { imageDigest, size })
    const said = async (to: MachineRef, script: string) => {
      const { exitCode, stdout, stderr } = await suite.exec(to, ['bash', '-c', script], { timeoutMs: 60_000 })
      return exitCode === 0 ? stdout.trim() : `${exitCode} ${stderr}`
    }
    await eventually(async () => ((await said(ref, server.write)).match(/^(?:1|)$/) ? true : null), 60_000)
    const { id } = suite.specOf({})
    const forked = await engine().fork([{ id, source: ref, networkGroup: 1, run: given }])
    expect(forked).toMatchObject([{ copied: 'memory' }])
    const copy = { id, generation: 1 }
    expect(await engine().start(copy, given)).toMatchObject({ resumed: true })
    expect(await said(copy, server.read)).toBe(server.kept)
    await engine().destroy(id)

    expect(await engine().suspend(ref, 0)).toBe(true)
    const again = { ...ref, generation: 2 }
    expect(await engine().start(again, given)).toMatchObject({ resumed: true })
    expect(await said(again, server.read)).toBe(server.kept)
  })
})

describe.skipIf(!hasCriu)('an engine that dies during a suspension', () => {
  let wishes: string
  let mortal: Awaited<ReturnType<typeof makeMortalCriu>>
  beforeAll(async () => {
    wishes = await mkdtemp('/var/tmp/berth-wishes-')
    mortal = await makeMortalCriu()
  })
  const { suite, paths, running, next, counts } = withEngine(
    () => ({ runtimes: { ...driverDefaults, criu: [mortal.program] } }),
    (options) => openEngineProcess(options, wishes),
  )
  afterAll(async () => {
    await mortal.remove()
    await rm(wishes, { recursive: true })
  })

  it('leaves a run that can continue and be suspended again', async () => {
    const large = { MB: '100' }
    const [ref, bystander] = [await running(large), await running()]
    await mortal.dawdle('dump')
    const suspension = kindOf(suite.engine().suspend(ref, 0))
    await eventually(async () => ((await mortal.met()) ? true : null))
    await writeFile(join(wishes, 'engine.freeze.before'), 'crash')
    expect(await kindOf(suite.engine().freeze(bystander))).toBe('engine_away')
    expect(await suspension).toBe('engine_away')
    await suite.reopen()
    expect((await readdir(paths(ref.id).dir)).filter((name) => name.startsWith('memory'))).toEqual([])
    expect(await suite.status(ref.id)).toMatchObject({ state: 'running', frozen: true })
    await suite.engine().thaw(ref)
    const last = (await counts(ref.id)).at(-1) ?? 0
    await eventually(async () => (((await counts(ref.id)).at(-1) ?? 0) > last ? true : null))
    expect(await suite.engine().suspend(ref, 0)).toBe(true)
    expect((await next(ref, large)).resumed).toBe(true)
  })
})

describe('without memory checkpoints', () => {
  const { suite, running, expectAnew } = withEngine(() => ({
    runtimes: { ...driverDefaults, criu: ['/bin/false'] },
  }))
  const engine = suite.engine

  it('because CRIU does not work, the engine reports that, stops machines gracefully and forks disks', async () => {
    const { classes } = await engine().capabilities()
    expect(classes.find((one) => one.class === 'runc')?.memory).toMatchObject({ available: false })
    const polite = await suite.running({
      entrypoint: ['bash', '-c', 'trap "exit 7" TERM; echo up; while :; do sleep 0.05; done'],
      cmd: [],
    })
    await suite.logged(polite.id, 1)
    expect(await engine().suspend(polite, 10_000)).toBe(false)
    expect(await suite.exitOf(polite)).toMatchObject({ code: 7 })
    const ref = await running()
    expect(await engine().suspend(ref, 0)).toBe(false)
    await expectAnew(ref)
  })
})
