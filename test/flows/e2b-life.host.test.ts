// The life of sandboxes, by the official client: their time, pauses, copies, lists, and what they may reach.

import { ALL_TRAFFIC, NotFoundError, Sandbox, SandboxNotFoundError, Secret, SecretNotFoundError } from 'e2b'
import { expect, it } from 'vitest'
import { connectionTo, createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'
import { isDeep } from '../support/part-of.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })

it('a sandbox shows its labels, environment and end, and its time can be set', async () => {
  const metadata = { app: 'shop', 'user name': 'a&b=c' }
  const sandbox = await createSandbox(berth, { metadata, envs: { COLOUR: 'blue' }, timeoutMs: 60_000 })
  const { startedAt, endAt, ...info } = await sandbox.getInfo()
  expect(info).toMatchObject({ templateId: 'base', metadata, state: 'running' })
  expect(endAt.getTime() - startedAt.getTime()).toBeGreaterThan(55_000)
  expect((await sandbox.commands.run('echo $COLOUR')).stdout).toBe('blue\n')
  await sandbox.setTimeout(3_600_000)
  expect((await sandbox.getInfo()).endAt.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
  const [sample] = await sandbox.getMetrics()
  expect(sample?.memUsed).toBeGreaterThan(1_000_000)
  await sandbox.kill()
})

it('a sandbox ends when its time has passed', async () => {
  const sandbox = await createSandbox(berth, { timeoutMs: 2000 })
  await expect.poll(async () => await sandbox.isRunning(), { timeout: 20_000 }).toBe(false)
  await expect(sandbox.getInfo()).rejects.toThrow(SandboxNotFoundError)
})

it('a sandbox that is to be paused at its end can be resumed, with its memory', async () => {
  const sandbox = await createSandbox(berth, { timeoutMs: 4000, lifecycle: { onTimeout: 'pause' } })
  const command = await sandbox.commands.run('sleep 1000', { background: true })
  await command.disconnect()
  await expect.poll(async () => await sandbox.isRunning(), { timeout: 20_000 }).toBe(false)
  await expect.poll(async () => (await sandbox.getInfo()).state).toBe('paused')
  await sandbox.connect({ timeoutMs: 60_000 })
  expect((await sandbox.commands.run(`kill -0 ${command.pid} && echo alive`)).stdout).toBe('alive\n')
  await sandbox.kill()
})

it('a client that waits for a command is told when its sandbox is paused, and attaches to it again', async () => {
  const sandbox = await createSandbox(berth)
  const command = await sandbox.commands.run('read line; echo "$line"', { background: true, stdin: true })
  const attached = await sandbox.commands.connect(command.pid)
  const told = Promise.allSettled([command.wait(), attached.wait()])
  await sandbox.pause()
  expect(await told).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
  await sandbox.connect()
  const again = await sandbox.commands.connect(command.pid)
  await sandbox.commands.sendStdin(command.pid, 'after\n')
  expect((await again.wait()).stdout).toBe('after\n')
  await sandbox.kill()
})

it('secrets of the team are made, changed, listed and deleted, without values', async () => {
  const secret = { value: 'sk-live-0123456789abcdef', hosts: ['api.example.com'] }
  expect((await berth.call('PUT', '/v1/secrets/KEY', secret)).status).toBe(200)
  const connection = connectionTo(berth)
  expect(await Secret.getInfo('KEY', connection)).toMatchObject({ name: 'KEY' })
  expect((await Secret.list(connection).nextItems()).map(({ name }) => name)).toEqual(['KEY'])
  expect([await Secret.exists('KEY', connection), await Secret.exists('OTHER', connection)]).toEqual([
    true,
    false,
  ])
  const metadata = { hosts: 'api.example.com' }
  await Secret.create('OTHER', 'sk-live-1', { ...connection, metadata })
  expect(await Secret.update('OTHER', 'sk-live-2', connection)).toMatchObject({ name: 'OTHER', metadata })
  expect(await Secret.destroy('OTHER', connection)).toBe(true)
  await expect(Secret.update('OTHER', 'sk-live-3', connection)).rejects.toThrow(SecretNotFoundError)
  expect(await Secret.destroy('KEY', connection)).toBe(true)
  expect(await Secret.destroy('KEY', connection)).toBe(false)
})

it('a paused sandbox answers nothing until it is connected to, and keeps its files', async () => {
  const sandbox = await createSandbox(berth)
  await sandbox.files.write('kept', 'kept')
  expect(await sandbox.pause()).toBe(true)
  expect(await sandbox.pause()).toBe(false)
  expect(await sandbox.isRunning()).toBe(false)
  await expect(sandbox.commands.run('true')).rejects.toThrow()
  await expect(sandbox.setTimeout(60_000)).rejects.toThrow(SandboxNotFoundError)
  const again = await Sandbox.connect(sandbox.sandboxId, connectionTo(berth))
  expect(await again.files.read('kept')).toBe('kept')
  await again.kill()
})

it('a sandbox reaches neither another sandbox nor a unit of its team', async () => {
  const [served, other] = await Promise.all([createSandbox(berth), createSandbox(berth)])
  await served.commands.run('python3 -m http.server 8000', { background: true })
  const address = (await served.commands.run('hostname -i')).stdout.trim()
  const ask = `curl --silent --fail --max-time 3 --retry 20 --retry-connrefused --retry-delay 1 http://${address}:8000/`
  expect((await served.commands.run(ask)).exitCode).toBe(0)
  const isReached = async () => (await other.commands.run(`${ask} || echo refused`)).stdout !== 'refused\n'
  expect(await isReached()).toBe(false)
  const egress = { mode: 'open', siblings: 'team' }
  await berth.call('PUT', `/v1/units/unit_${other.sandboxId}/egress`, egress)
  expect(await isReached()).toBe(true)
  await Promise.all([served, other].map(async (each) => await each.kill()))
})

it('a copy has the files of its source, and each goes its own way', async () => {
  const source = await createSandbox(berth)
  await source.files.write('shared', 'before')
  const copies = await source.fork({ count: 2 })
  const [one, other] = copies.map((copy) => {
    if (copy instanceof Error) throw copy
    return copy
  })
  await one?.files.write('shared', 'changed')
  expect(await other?.files.read('shared')).toBe('before')
  await Promise.all([source, one, other].map(async (each) => await each?.kill()))
})

it('lists show sandboxes by label and state in pages, and no other unit', async () => {
  const unit = { spec: { name: 'other', image: 'berth.local/debian:12' } }
  expect((await berth.call('POST', '/v1/units', unit)).status).toBe(201)
  const made = await Promise.all(
    [1, 2, 3].map(async () => await createSandbox(berth, { metadata: { group: 'listed' } })),
  )
  await made[0]?.pause()
  const idsOf = async (state: ('running' | 'paused')[]) => {
    const pages = Sandbox.list({
      ...connectionTo(berth),
      query: { metadata: { group: 'listed' }, state },
      limit: 1,
    })
    const found: string[] = []
    while (pages.hasNext) found.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId))
    return found
  }
  expect(await idsOf(['paused'])).toEqual([made[0]?.sandboxId])
  expect(new Set(await idsOf(['running']))).toEqual(new Set([made[1]?.sandboxId, made[2]?.sandboxId]))
  const all = await Sandbox.list(connectionTo(berth)).nextItems()
  expect(all.every(({ templateId }) => templateId === 'base')).toBe(true)
  await Promise.all(made.map(async (each) => await each.kill()))
})

it('a sandbox without access to the internet reaches no host, until that is changed', async () => {
  const sandbox = await createSandbox(berth, { allowInternetAccess: false })
  expect(await sandbox.getInfo()).toMatchObject({ allowInternetAccess: false })
  await sandbox.updateNetwork({ allowOut: ['example.com'], denyOut: ['0.0.0.0/0'] })
  expect((await sandbox.getInfo()).network).toMatchObject({ allowOut: ['example.com'] })
  await sandbox.updateNetwork({ allowOut: ['1.1.1.1', '8.8.8.0/24'], denyOut: [ALL_TRAFFIC] })
  expect((await sandbox.getInfo()).network).toMatchObject({ allowOut: ['1.1.1.1', '8.8.8.0/24'] })
  await sandbox.updateNetwork({ denyOut: ['203.0.113.0/24'] })
  expect(await sandbox.getInfo()).toMatchObject({
    allowInternetAccess: true,
    network: { denyOut: ['203.0.113.0/24'] },
  })
  await sandbox.kill()
})

it('what is not here yet is refused with a sentence', async () => {
  await expect(createSandbox(berth, { volumeMounts: { '/data': 'volume' } })).rejects.toThrow(/not supported/)
  await expect(Sandbox.create('no such template!', connectionTo(berth))).rejects.toThrow(/no template/)
})

it.skipIf(!isDeep)('a hundred commands at once in ten sandboxes each answer their own output', async () => {
  const made = await Promise.all(Array.from({ length: 10 }, async () => await createSandbox(berth)))
  const told = await Promise.all(
    made.flatMap((sandbox, at) =>
      Array.from({ length: 10 }, async (_, count) => {
        const { stdout } = await sandbox.commands.run(`echo ${at} ${count}`)
        return stdout === `${at} ${count}\n`
      }),
    ),
  )
  expect(told).toEqual(told.map(() => true))
  await Promise.all(made.map(async (each) => await each.kill()))
})

it('calls are in the audit log with the name of the library', async () => {
  type Row = { action: string; via: string; agentName: string | null }
  const { body } = await berth.call<{ events: Row[] }>('GET', '/v1/audit?action=unit.create')
  expect(body.events[0]).toMatchObject({ via: 'e2b', agentName: 'e2b-js-sdk' })
})

it('a template without a build is refused as one that is not there', async () => {
  const made = Sandbox.create('never-built', { requestTimeoutMs: 600_000, ...connectionTo(berth) })
  await expect(made).rejects.toThrow(/^404: There is no template "never-built"/)
})

it('a sandbox that never was is not found', async () => {
  const unknown = '0'.repeat(32)
  await expect(Sandbox.getInfo(unknown, connectionTo(berth))).rejects.toThrow(NotFoundError)
  expect(await Sandbox.kill(unknown, connectionTo(berth))).toBe(false)
})
