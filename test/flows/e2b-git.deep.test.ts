// Git in sandboxes, by the official client, on a real unit: every call of it, with a repository beside as the remote.

import { GitUpstreamError, InvalidArgumentError, type Sandbox } from 'e2b'
import { beforeAll, expect, it } from 'vitest'
import { createSandbox } from '../support/e2b.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth({ BERTH_ISOLATION: 'gvisor' })
const work = '/home/user/work'
const remote = '/home/user/remote.git'

let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await createSandbox(berth)
  const { git } = sandbox
  await git.configureUser('Agent', 'agent@example.test')
  await git.init(remote, { bare: true, initialBranch: 'main' })
  await git.init(work, { initialBranch: 'main' })
})

it('a repository begins with commits, remotes and branches', async () => {
  const { git, files } = sandbox
  await files.write(`${work}/file`, 'one')
  expect((await git.status(work)).fileStatus.map(({ name }) => name)).toEqual(['file'])
  await git.add(work, { files: ['file'] })
  await git.commit(work, 'First', { authorName: 'Other', authorEmail: 'other@example.test' })
  await git.commit(work, 'Empty', { allowEmpty: true })
  expect(await git.status(work)).toMatchObject({ currentBranch: 'main', isClean: true })
  expect(await git.remoteGet(work, 'origin')).toBeUndefined()
  await git.remoteAdd(work, 'origin', '/nowhere')
  await git.remoteAdd(work, 'origin', remote, { overwrite: true, fetch: true })
  expect(await git.remoteGet(work, 'origin')).toBe(remote)
  await git.createBranch(work, 'topic')
  expect(await git.branches(work)).toEqual({ branches: ['main', 'topic'], currentBranch: 'topic' })
  await git.checkoutBranch(work, 'main')
  await git.deleteBranch(work, 'topic', { force: true })
  expect((await git.branches(work)).branches).toEqual(['main'])
})

it('commits are pushed, cloned and pulled', async () => {
  const { git, files } = sandbox
  await expect(git.pull(work)).rejects.toThrow(GitUpstreamError)
  await git.push(work, { remote: 'origin', branch: 'main' })
  const clone = '/home/user/clone'
  await git.clone(remote, { path: clone, branch: 'main', depth: 1 })
  expect(await files.read(`${clone}/file`)).toBe('one')
  await files.write(`${clone}/file`, 'two')
  await git.add(clone)
  await git.commit(clone, 'Second')
  await git.push(clone)
  await git.pull(work)
  expect(await files.read(`${work}/file`)).toBe('two')
  expect(await git.status(work)).toMatchObject({ upstream: 'origin/main', ahead: 0, behind: 0 })
  await expect(git.clone('/home/user/nothing', { path: '/home/user/x' })).rejects.toThrow()
})

it('changes are taken back, and settings are kept', async () => {
  const { git, files } = sandbox
  await files.write(`${work}/file`, 'changed')
  await git.add(work)
  await git.restore(work, { paths: ['file'], staged: true })
  expect((await git.status(work)).hasStaged).toBe(false)
  await git.restore(work, { paths: ['file'] })
  expect((await git.status(work)).isClean).toBe(true)
  await git.reset(work, { mode: 'hard', target: 'HEAD~1' })
  expect(await files.read(`${work}/file`)).toBe('one')
  await git.setConfig('pull.rebase', 'true', { scope: 'local', path: work })
  expect(await git.getConfig('pull.rebase', { scope: 'local', path: work })).toBe('true')
  expect(await git.getConfig('user.name')).toBe('Agent')
  expect(await git.getConfig('no.such')).toBeUndefined()
  await git.dangerouslyAuthenticate({ username: 'agent', password: 'secret', host: 'git.example.test' })
  expect(await files.read('.git-credentials')).toBe('https://agent:secret@git.example.test\n')
  await expect(git.restore(work, { paths: [] })).rejects.toThrow(InvalidArgumentError)
})
