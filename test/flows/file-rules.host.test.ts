// The table of docs/files.md in real units of both classes: what each door does to links, folders, devices, modes, owners and
// names that are not UTF-8. A program in the unit that opens the path is the reference.

import { beforeAll, describe, expect, it } from 'vitest'
import type { FileReason } from '../../src/contract/errors.ts'
import type { Unit } from '../../src/contract/unit.ts'
import { createUnit, exec } from '../support/berth-units.ts'
import { newEra } from '../support/mcp.ts'
import { tar, type TarEntry } from '../support/tar.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const IMAGE = 'berth.local/debian:12'
const TREE = `
mkdir -p "$1/folder"; cd "$1"
printf old > plain; chown 7:8 plain; chmod 0640 plain
ln -s plain link; ln -s made dangling; ln -s ../elsewhere-$2 up; ln -s second chain; ln -s folder/third second
ln -s folder led; ln -s nowhere/at-all lost; ln -s loop-b loop-a; ln -s loop-a loop-b`
/** Everything below a directory: type, mode, owner, target and content. */
const STATE = `cd "$1"; find . -printf '%P %y %m %U:%G %l\\n' | sort; head -c 20 plain made folder/* ../elsewhere-$2 2>&1`

const written = ['plain', 'link', 'dangling', 'up', 'chain', 'folder/new', 'led/through']
const refused = ['loop-a', 'lost', 'folder']

describe.each(usualClasses)('with %s, a unit', (isolation) => {
  const berth = useBerth({ BERTH_ISOLATION: isolation })
  let unit: Unit
  beforeAll(async () => {
    unit = await createUnit(berth, { name: 'files', image: IMAGE, cmd: ['sleep', 'infinity'] })
  })

  const sh = async (script: string, ...args: string[]) =>
    await exec(berth, unit, ['bash', '-c', script, 'sh', ...args])
  const call = async (
    method: string,
    rest: string,
    query: Record<string, string>,
    body?: Buffer | object,
  ) => {
    const { baseUrl, apiKey } = berth.credentials
    const isBytes = Buffer.isBuffer(body)
    const url = `${baseUrl}/v1/units/${unit.id}/${rest}?${new URLSearchParams(query).toString()}`
    const type = isBytes ? 'application/octet-stream' : 'application/json'
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: isBytes ? new Uint8Array(body) : JSON.stringify(body) }),
    })
    const { status, headers } = response
    return {
      status,
      body: (await response.json()) as Record<string, unknown>,
      mode: headers.get('berth-file-mode'),
    }
  }
  const refusal = (text: string, reason?: FileReason) => ({
    status: 400,
    body: {
      error: {
        code: 'validation',
        message: expect.stringContaining(text),
        details: [reason ? { reason } : {}],
      },
    },
  })

  /** Whether the write succeeded, by each door. */
  const doors: Record<string, (path: string) => Promise<boolean>> = {
    program: async (path) => (await sh('printf new > "$1"', path)).exitCode === 0,
    PUT: async (path) => {
      const { status, body } = await call('PUT', 'files', { path }, Buffer.from('new'))
      return status === 200 && body['verified'] === true
    },
    POST: async (path) => (await call('POST', 'files', {}, { path, contentBase64: 'bmV3' })).status === 200,
    MCP: async (path) => {
      const { baseUrl, apiKey } = berth.credentials
      const session = await newEra({ baseUrl, key: apiKey })
      const { isError } = await session.call('write_file', { unit: unit.id, path, text: 'new' })
      await session.close()
      return !isError
    },
  }

  it('has after a write by PUT, POST or MCP what it has after a write by its own program', async () => {
    const states: Record<string, string> = {}
    for (const [door, write] of Object.entries(doors)) {
      const at = `/srv/${door}/tree`
      await sh(TREE, at, door)
      for (const name of written)
        expect([door, name, await write(`${at}/${name}`)]).toEqual([door, name, true])
      for (const name of refused)
        expect([door, name, await write(`${at}/${name}`)]).toEqual([door, name, false])
      states[door] = (await sh(STATE, at, door)).stdout.replaceAll(door, 'DOOR')
    }
    expect(states['program']).toContain('made f 644 0:0')
    for (const state of Object.values(states)) expect(state).toBe(states['program'])
    expect((await sh('ls /made /third /elsewhere-* 2>/dev/null')).stdout).toBe('')
    const looped = await call('PUT', 'files', { path: '/srv/PUT/tree/loop-a' }, Buffer.from('x'))
    expect(looped).toMatchObject(refusal('/srv/PUT/tree/loop-a: ', 'too_many_links'))
    expect(looped).toMatchObject(refusal('Too many levels of symbolic links', 'too_many_links'))
  })

  it('gives a file the mode of the write, answers it and lists it, and never reads a device or a FIFO', async () => {
    const path = '/srv/modes/run'
    expect((await call('PUT', 'files', { path, mode: '4755' }, Buffer.from('#!/bin/sh\n'))).status).toBe(200)
    await sh('chown 7:8 /srv/modes/run; ln -s run /srv/modes/link; mkfifo /srv/modes/fifo')
    const through = { path: '/srv/modes/link', mode: '0710' }
    expect((await call('PUT', 'files', through, Buffer.from('#!/bin/sh\n'))).status).toBe(200)
    expect((await call('GET', 'files', { path: '/srv/modes/link' })).mode).toBe('0710')
    expect((await sh('cd /srv/modes; stat -c "%a %u:%g" run; readlink link')).stdout).toBe('710 7:8\nrun\n')
    const listed = await call('GET', 'directory', { path: '/srv/modes' })
    expect(listed.body['entries']).toMatchObject([
      { name: 'fifo' },
      { name: 'link' },
      { name: 'run', mode: '0710' },
    ])
    for (const special of ['/srv/modes/fifo', '/dev/null']) {
      expect(await call('GET', 'files', { path: special })).toMatchObject(
        refusal('is not a regular file', 'not_a_file'),
      )
      expect(await call('PUT', 'files', { path: special }, Buffer.from('x'))).toMatchObject(
        refusal('is not a regular file', 'not_a_file'),
      )
    }
  })

  it('unpacks an archive with its modes, and names the entry that it cannot make', async () => {
    await sh('mkdir -p /srv/box/taken; cd /srv/box; printf old > target; ln -s target link; ln -s taken led')
    const unpack = async (...entries: TarEntry[]) =>
      await call('PUT', 'archive', { path: '/srv/box' }, tar(entries))
    const link = { name: 'link', content: 'new', mode: 0o750, uid: 7 }
    expect((await unpack(link, { name: 'fifo', type: 'fifo' })).status).toBe(200)
    expect((await sh('cd /srv/box; stat -c "%F %a %u" link; cat target; stat -c %F fifo')).stdout).toBe(
      'regular file 750 0\noldfifo\n',
    )
    const device = { name: 'dev/null', type: 'char', device: [1, 3] } satisfies TarEntry
    const block = { name: 'disk', type: 'block', device: [8, 0] } satisfies TarEntry
    const answer = await unpack(device, block, { name: 'after', content: 'x' })
    for (const name of ['dev/null: a device', 'disk: a device'])
      expect(answer).toMatchObject(refusal(name, 'refused'))
    expect((await sh('ls /srv/box')).stdout).toContain('after')
    expect((await unpack({ name: 'led/through', content: 'x' })).status).toBe(200)
    expect((await sh('cat /srv/box/taken/through; readlink /srv/box/led')).stdout).toBe('xtaken\n')
    expect(await unpack({ name: 'taken', content: 'x' })).toMatchObject(
      refusal('taken: Is a directory', 'not_a_file'),
    )
  })

  it('has files whose names are not UTF-8 listed, read, written and deleted', async () => {
    const base64 = (bytes: string) => Buffer.from(bytes, 'latin1').toString('base64')
    await sh(
      `mkdir /srv/odd; cd /srv/odd; printf x > "$(printf 'r\\351sum')"; printf y > "$(printf 'z\\377\\nz')"; touch é`,
    )
    const page = async (more: Record<string, string>) =>
      (await call('GET', 'directory', { path: '/srv/odd', limit: '2', ...more })).body
    const first = await page({})
    const names = [first, await page({ after: String(first['next']) })].flatMap(({ entries }) => entries)
    expect(names).toMatchObject([
      { name: base64('r\xe9sum'), encoding: 'base64', type: 'file' },
      { name: base64('z\xff\nz'), encoding: 'base64' },
      { name: 'é', type: 'file' },
    ])
    const path = base64('/srv/odd/r\xe9sum')
    const named = { path, pathEncoding: 'base64' }
    expect((await call('GET', 'files', named)).body).toEqual({ ...named, contentBase64: 'eA==' })
    expect((await call('PUT', 'files', named, Buffer.from('new'))).body).toMatchObject({
      ...named,
      verified: true,
    })
    expect((await sh(`cat "$(printf '/srv/odd/r\\351sum')"`)).stdout).toBe('new')
    const inside = { path: base64('/srv/\xff/deep'), pathEncoding: 'base64' }
    const packed = tar([{ name: Buffer.from('in\xfe', 'latin1'), content: 'x' }])
    expect((await call('PUT', 'archive', inside, packed)).body).toMatchObject(inside)
    expect((await call('GET', 'directory', inside)).body['entries']).toMatchObject([
      { name: base64('in\xfe') },
    ])
    expect((await call('DELETE', 'files', named)).body).toEqual(named)
    expect(await call('GET', 'files', named)).toMatchObject({ status: 404 })
    expect(await call('GET', 'files', { path: '/srv', pathEncoding: 'base64' })).toMatchObject(
      refusal('path'),
    )
  })

  it('that has something in the way of its boot files or volume does not start, with 409, the path and the cause', async () => {
    const spec = { image: IMAGE, cmd: ['sleep', 'infinity'], files: { '/srv/boot/file': 'boot' } }
    const plants: [plant: string, path: string, cause: string][] = [
      ['rm /srv/boot/file; mkdir /srv/boot/file', '/srv/boot/file', 'a directory is in its place'],
      ['rm -r /srv/boot; printf x > /srv/boot', '/srv/boot/file', 'a file, or a link to one'],
      ['rm -r /srv/boot; ln -s boot /srv/boot', '/srv/boot/file', 'links on the way lead in a circle'],
      ['mv /data /old; ln -s data /data', '/data/deep', 'links on the way lead in a circle'],
    ]
    await Promise.all(
      plants.map(async ([plant, path, cause], i) => {
        const volume = { mount: '/data/deep', gb: 1 }
        const { id } = await createUnit(berth, { ...spec, name: `planted-${i}`, volume })
        const ran = await berth.call('POST', `/v1/units/${id}/exec`, { cmd: ['sh', '-ec', plant] })
        expect(ran.body).toMatchObject({ exitCode: 0 })
        await berth.call('POST', `/v1/units/${id}/stop`)
        const { status, body } = await berth.call<{ error: { message: string } }>(
          'POST',
          `/v1/units/${id}/start`,
        )
        expect([status, body.error.message]).toEqual([409, expect.stringContaining(cause)])
        expect(body.error.message).toContain(path)
        await berth.call('DELETE', `/v1/units/${id}`)
      }),
    )
  })

  it('has its boot files in place of links, with a mode that lets scripts run', async () => {
    const files = { '/etc/localtime': 'x', '/usr/local/bin/hello': '#!/bin/sh\necho hello\n' }
    const booted = await createUnit(berth, {
      name: 'booted',
      image: IMAGE,
      cmd: ['sleep', 'infinity'],
      files,
    })
    const looked = await exec(berth, booted, ['sh', '-c', 'stat -c "%F %a" /etc/localtime; hello'])
    expect(looked.stdout).toBe('regular file 644\nhello\n')
    const overFolder = {
      spec: { name: 'over', image: IMAGE, files: { '/usr/bin': 'x' } },
      waitTimeoutMs: 300_000,
    }
    expect(await berth.call('POST', '/v1/units', overFolder)).toMatchObject({
      status: 409,
      body: {
        error: {
          message: expect.stringContaining('/usr/bin cannot be written: a directory is in its place'),
        },
      },
    })
  })
})
