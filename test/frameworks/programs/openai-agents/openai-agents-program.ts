// Sessions and the client of the OpenAI Agents SDK, call by call, and agents with scripted models that use them.

import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { Berth, type Unit } from '@berth/sdk'
import { UnitSandboxClient, type UnitSession, unitSession } from '@berth/sdk/openai-agents'
import { run, setTracingDisabled } from '@openai/agents'
import {
  filesystem,
  type Manifest,
  SandboxAgent,
  shell,
  Manifest as ManifestClass,
} from '@openai/agents/sandbox'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { ask } from './agent.ts'

setTracingDisabled(true)
const berth = new Berth()
const image = 'berth.local/python:3.11'
let unit: Unit
let session: UnitSession
before(async () => {
  unit = await berth.units.create(image, { timeoutMs: 600_000 })
  session = unitSession(unit)
  await session.start()
})
after(async () => void (await unit.destroy()))

const bytes = (text: string) => new TextEncoder().encode(text)
const text = (content: Uint8Array) => new TextDecoder().decode(content)
const sessionIn = (answer: string) => Number(/session (\d+)/.exec(answer)?.[1])

describe('commands', () => {
  it('run to their end in the workspace, as the user who is named', async () => {
    const ended = await session.exec({ cmd: 'pwd; whoami; echo no >&2; exit 3', runAs: 'nobody' })
    assert.deepEqual([ended.stdout, ended.stderr, ended.exitCode], ['/workspace\nnobody\n', 'no\n', 3])
    assert.equal(
      (await session.exec({ cmd: 'pwd', workdir: '/tmp', shell: 'bash', login: true })).stdout,
      '/tmp\n',
    )
  })

  it('are told with their code, and cut to as many tokens as are asked for', async () => {
    assert.match(await session.execCommand({ cmd: 'echo hello; exit 4' }), /^Exit code: 4\n[^]*hello/)
    const cut = await session.execCommand({ cmd: 'yes word | head -10000', maxOutputTokens: 20 })
    assert.ok(cut.length < 300)
    assert.match(cut, /are left out/)
  })

  it('that go on are asked again, typed into and interrupted', async () => {
    const asked = { cmd: 'echo begun; read line; echo "got $line"; sleep 300', yieldTimeMs: 500 }
    const begun = await session.execCommand(asked)
    assert.match(begun, /Still running[^]*begun/)
    const sessionId = sessionIn(begun)
    assert.match(await session.writeStdin({ sessionId, chars: 'a line\n', yieldTimeMs: 500 }), /got a line/)
    assert.match(
      await session.writeStdin({ sessionId, chars: '\u0003', yieldTimeMs: 5000 }),
      /^Exit code: 130/,
    )
    await assert.rejects(async () => await session.writeStdin({ sessionId }), /No command runs/)
  })

  it('have a terminal where it is asked for', async () => {
    const begun = await session.execCommand({
      cmd: 'test -t 0 && echo terminal; sleep 300',
      tty: true,
      yieldTimeMs: 500,
    })
    assert.match(begun, /Still running[^]*terminal/)
    assert.match(
      await session.writeStdin({ sessionId: sessionIn(begun), chars: '\u0003', yieldTimeMs: 5000 }),
      /^Exit/,
    )
  })
})

describe('files', () => {
  it('are made, patched, moved and deleted by the editor', async () => {
    const editor = session.createEditor()
    await editor.createFile({ type: 'create_file', path: 'a.py', diff: '+one\n+two' })
    assert.equal(text(await session.readFile({ path: 'a.py' })), 'one\ntwo')
    await editor.updateFile({
      type: 'update_file',
      path: 'a.py',
      diff: '@@\n one\n-two\n+three',
      moveTo: 'b/c.py',
    })
    assert.equal(text(await session.readFile({ path: '/workspace/b/c.py' })), 'one\nthree')
    assert.equal(await session.pathExists('a.py'), false)
    await editor.deleteFile({ type: 'delete_file', path: 'b/c.py' })
    const again = await editor.deleteFile({ type: 'delete_file', path: 'b/c.py' })
    assert.equal(again?.status, 'failed')
    assert.equal(await session.directoryExists('b'), true)
  })

  it('are listed, read in part and looked at as pictures', async () => {
    await session.exec({
      cmd: 'mkdir d; cd d; printf abcdef >f; mkdir g; ln -s f l; printf "\\211PNG\\r\\n\\032\\n" >p',
    })
    assert.deepEqual(await session.listDir({ path: 'd' }), [
      { name: 'f', path: '/workspace/d/f', type: 'file' },
      { name: 'g', path: '/workspace/d/g', type: 'dir' },
      { name: 'l', path: '/workspace/d/l', type: 'other' },
      { name: 'p', path: '/workspace/d/p', type: 'file' },
    ])
    assert.equal(text(await session.readFile({ path: 'd/l', maxBytes: 3 })), 'abc')
    assert.equal((await session.viewImage({ path: 'd/p' })).image.mediaType, 'image/png')
    await assert.rejects(async () => await session.viewImage({ path: 'd/f' }), /no picture/)
  })

  it('of the workspace are kept as an archive and put back', async () => {
    await session.exec({ cmd: 'echo kept >kept; mkdir -p deep/er; echo x >deep/er/x' })
    const archive = await session.persistWorkspace()
    await session.exec({ cmd: 'rm -r kept deep; echo new >new' })
    await session.hydrateWorkspace(archive)
    assert.equal((await session.exec({ cmd: 'cat kept deep/er/x; ls new' })).stdout, 'kept\nx\n')
  })
})

/** The entries are files, folders, files of this machine, and a repository that the unit itself has. */
async function manifestOfAll(): Promise<Manifest> {
  await mkdir('local/below', { recursive: true })
  await writeFile('local/below/here.sh', '#!/bin/sh\necho here\n', { mode: 0o755 })
  return new ManifestClass({
    environment: { COLOUR: 'blue' },
    entries: {
      'note.txt': { type: 'file', content: 'a note' },
      folder: { type: 'dir', children: { 'binary.bin': { type: 'file', content: bytes('\u0000x') } } },
      copied: { type: 'local_dir', src: 'local' },
      'one.sh': { type: 'local_file', src: 'local/below/here.sh' },
    },
  })
}

describe('the client', () => {
  it('makes a unit with all entries of a manifest and destroys it with the session', async () => {
    const made = await new UnitSandboxClient({ image }).create({ manifest: await manifestOfAll() })
    const cmd = 'cat note.txt; wc -c <folder/binary.bin; copied/below/here.sh; ./one.sh; echo $COLOUR'
    assert.equal((await made.exec({ cmd })).stdout, 'a note2\nhere\nhere\nblue\n')
    assert.equal(await made.running(), true)
    await made.delete()
    await assert.rejects(async () => await made.unit.exec('true'))
  })

  it('clones a repository, or a folder of it, into the workspace', async () => {
    // The first unit of this image waits until that is built.
    const client = new UnitSandboxClient({ image: 'berth.local/base:12', timeoutMs: 600_000 })
    const made = await client.create()
    const commit = 'git -c user.name=a -c user.email=a@example.com commit -qm one'
    const cmd = `git init -q /tmp/repo && cd /tmp/repo && mkdir sub && echo cloned >sub/file && git add . && ${commit}`
    assert.equal((await made.exec({ cmd })).exitCode, 0)
    const entry = { type: 'git_repo' as const, repo: 'file:///tmp/repo' }
    await made.materializeEntry({ path: 'whole', entry })
    await made.materializeEntry({ path: 'part', entry: { ...entry, subpath: 'sub' } })
    assert.equal(text(await made.readFile({ path: 'whole/sub/file' })), 'cloned\n')
    assert.equal(text(await made.readFile({ path: 'part/file' })), 'cloned\n')
    const none = { ...entry, repo: 'file:///tmp/none' }
    await assert.rejects(async () => await made.materializeEntry({ path: 'x', entry: none }))
    await made.delete()
  })

  it('refuses mounts, users and local files outside of the working directory', async () => {
    const entry = { type: 'local_file' as const, src: '/etc/passwd' }
    await assert.rejects(
      async () => await session.materializeEntry({ path: 'x', entry }),
      /working directory/,
    )
    const users = new ManifestClass({ users: ['someone'] })
    await assert.rejects(async () => await session.applyManifest(users), /Users and groups/)
  })

  it('takes a session up again from its serialized state', async () => {
    const client = new UnitSandboxClient({ image })
    const made = await client.create({ manifest: await manifestOfAll() })
    await made.exec({ cmd: 'echo before >before' })
    const state = JSON.parse(JSON.stringify(await client.serializeSessionState(made.state))) as Record<
      string,
      unknown
    >
    const manifest = { root: made.state.manifest.root, environment: { COLOUR: 'blue' } }
    const resumed = await client.resume(await client.deserializeSessionState({ ...state, manifest }))
    assert.equal((await resumed.exec({ cmd: 'cat before; echo $COLOUR' })).stdout, 'before\nblue\n')
    await client.delete(resumed.state)
    await assert.rejects(async () => await client.deserializeSessionState({ manifest }), /unitId/)
  })
})

describe('an agent', () => {
  it('uses its shell, types into a command and patches files of a unit that stays', async () => {
    const operation = { type: 'create_file' as const, path: 'made.py', diff: '+print(6 * 7)' }
    const model = new ScriptedModel([
      [{ type: 'apply_patch_call', callId: 'one', status: 'completed', operation }],
      [functionCall('exec_command', { cmd: 'python3 made.py' }, { callId: 'two' })],
      [
        functionCall(
          'exec_command',
          { cmd: 'read a; echo "read $a"', yield_time_ms: 300 },
          { callId: 'three' },
        ),
      ],
      [
        functionCall(
          'write_stdin',
          { session_id: 2, chars: 'typed\n', yield_time_ms: 5000 },
          { callId: 'four' },
        ),
      ],
      [assistantMessage('done')],
    ])
    const agent = new SandboxAgent({ name: 'coder', model, capabilities: [shell(), filesystem()] })
    const { finalOutput } = await run(agent, 'go', { sandbox: { session: unitSession(unit) } })
    assert.equal(finalOutput, 'done')
    const input = JSON.stringify(model.lastCall?.request.input)
    assert.match(input, /Exit code: 0[^"]*42/)
    assert.match(input, /Exit code: 0[^"]*read typed/)
    assert.equal((await unit.refresh()).state, 'running')
  })

  it('of the example has a unit for its run, which is gone afterwards', async () => {
    const model = new ScriptedModel([
      [functionCall('exec_command', { cmd: 'python3 -c "print(6 * 7)"' }, { callId: 'one' })],
      [assistantMessage('done')],
    ])
    assert.equal(await ask(model, 'go'), 'done')
    assert.match(JSON.stringify(model.lastCall?.request.input), /Exit code: 0[^"]*42/)
    assert.deepEqual(
      (await berth.units.list().all()).map(({ id }) => id),
      [unit.id],
    )
  })
})
