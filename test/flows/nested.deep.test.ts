// Containers inside a unit, as an agent has them: docker, its compose, and buildah, on the real product. Where the runsc of the
// host cannot do it, the create says so.

import { beforeAll, describe, expect, it } from 'vitest'
import type { ForkResult } from '../../src/contract/fork.ts'
import type { RunResult } from '../../src/contract/run-result.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { freeze, hibernate } from '../support/published.ts'
import { useBerth } from '../support/use-berth.ts'

/** The first unit of an image waits for the build. */
const WITH_BUILD_MS = 400_000
const patient = { timeout: WITH_BUILD_MS }

type Refusal = { error: { code: string; message: string; details: { issues: { path: string }[] } } }

const nested = { image: 'berth.local/debian:12', nested: true }

describe('with runc', () => {
  const berth = useBerth({ BERTH_ISOLATION: 'runc' })

  it('a unit in which containers may run is refused with a sentence that says why', async () => {
    const spec = { ...nested, name: 'no' }
    const { status, body } = await berth.call<Refusal>('POST', '/v1/units', { spec })
    expect(status).toBe(400)
    expect(body.error.message).toContain('share the kernel of the host')
  })
})

describe('with gvisor', () => {
  // Without the frozen tier, so that a sleeping unit is stopped.
  const berth = useBerth({ BERTH_ISOLATION: 'gvisor', BERTH_FROZEN_FOR: '0s' })
  let unit: Unit | null = null

  /** Null: this runsc cannot, and the create has said so. */
  beforeAll(async () => {
    const body = { recipe: 'docker', waitTimeoutMs: 300_000 }
    const answer = await berth.call<RunResult & Refusal>('POST', '/v1/units', body)
    if (answer.status === 400) expect(answer.body.error.message).toContain('cannot mount their layers')
    else {
      expect(answer.status, JSON.stringify(answer.body)).toBe(201)
      unit = answer.body.units[0] ?? null
      await shell(importBusybox)
    }
  }, WITH_BUILD_MS)

  const shellOf = async (of: Unit, script: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await exec(berth, of, ['sh', '-ec', script])
    expect(exitCode, `${stdout}${stderr}`).toBe(0)
    return stdout
  }
  const shell = async (script: string) => {
    if (!unit) throw new Error('there is no unit')
    return await shellOf(unit, script)
  }

  it('docker runs a container, which reaches the network by the unit’s address', patient, async (test) => {
    if (!unit) return test.skip()
    expect(await shell('docker run --rm box echo from inside')).toBe('from inside\n')
    const web = await createUnit(berth, {
      name: 'web',
      image: 'berth.local/debian:12',
      cmd: ['sh', '-c', 'cd /etc && exec /run/berth/busybox httpd -f -p 8000'],
    })
    const at = web.internalHost
    const fetch = `docker run --rm box sh -c 'busybox printf "GET /debian_version HTTP/1.0\\r\\n\\r\\n" | busybox nc -w 5 '"$(getent ahostsv4 ${at} | cut -d' ' -f1 | head -1)"' 8000'`
    expect(await shell(fetch)).toContain('12.')
  })

  it('services of a compose file reach each other by name', patient, async (test) => {
    if (!unit) return test.skip()
    await shell(`mkdir -p /root/app && cd /root/app && cat >docker-compose.yml <<'END'
version: "3"
services:
  web:
    image: box
    command: ["sh", "-c", "mkdir /www; echo from the other >/www/index.html; exec httpd -f -p 80 -h /www"]
    ports: ["8080:80"]
  client:
    image: box
    depends_on: [web]
    command: ["sleep", "3600"]
END
docker-compose up -d`)
    const looked = await shell('cd /root/app && docker-compose exec -T client nslookup web.')
    const address = /Address: (172\.\S+)/.exec(looked)?.[1] ?? ''
    const ask = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 ${address} 80`
    expect(await shell(`cd /root/app && docker-compose exec -T client sh -c "${ask}"`)).toContain(
      'from the other',
    )
    expect(await shell('curl -fsS http://127.0.0.1:8080/')).toBe('from the other\n')
    await shell('cd /root/app && docker-compose down')
  })

  it('docker and buildah build images', patient, async (test) => {
    if (!unit) return test.skip()
    await shell(`mkdir -p /root/made && cd /root/made && cp /run/berth/busybox . && cat >Dockerfile <<'END'
FROM box
RUN ["busybox", "touch", "/made"]
CMD ["busybox", "ls", "/made"]
END
cat >Containerfile <<'END'
FROM scratch
COPY busybox /bin/busybox
RUN ["/bin/busybox", "touch", "/made"]
END
docker build --quiet -t made . && buildah bud -f Containerfile -t also-made .`)
    expect(await shell('docker run --rm made')).toBe('/made\n')
    expect(await shell('buildah images')).toContain('also-made')
  })

  it('images and containers are there after a sleep, and in a fork', patient, async (test) => {
    if (!unit) return test.skip()
    await shell('docker run --name kept box sh -c "echo kept >/word"')
    await hibernate(berth, [unit])
    const read = 'until docker version >/dev/null 2>&1; do sleep 0.2; done; docker cp kept:/word - | tar -xO'
    expect(await shell(read)).toBe('kept\n')
    expect(await shell('docker run --rm box echo again')).toBe('again\n')
    await freeze(berth, unit)
    const forked = await berth.call<ForkResult>('POST', `/v1/stacks/${unit.stackId}/fork`, { into: 'copy' })
    expect(forked.status, JSON.stringify(forked.body)).toBe(201)
    const copy = forked.body.units.find(({ name }) => name === unit?.name)
    if (!copy) throw new Error('the fork has no such unit')
    expect(copy.nested).toBe(true)
    expect(await shellOf(copy, read)).toBe('kept\n')
  })
})

const importBusybox = `mkdir -p /tmp/box/bin && cp /run/berth/busybox /tmp/box/bin/
for each in sh echo ls mkdir touch httpd sleep nslookup nc printf; do ln -sf busybox /tmp/box/bin/$each; done
tar -C /tmp/box -c . | docker import --change 'ENV PATH=/bin' - box`
