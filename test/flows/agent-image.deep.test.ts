// The image berth.local/agent: a machine on which coding agents find their tools.

import { beforeAll, expect, it } from 'vitest'
import { Berth as Client, type Unit } from '../../packages/sdk/src/index.ts'
import { useBerth } from '../support/use-berth.ts'

const minutes = (count: number) => count * 60_000
const berth = useBerth()
let unit: Unit

beforeAll(async () => {
  const { baseUrl, apiKey } = berth.credentials
  const client = new Client({ url: baseUrl, apiKey })
  const image = 'berth.local/agent:1'
  unit = await client.units.create({ image, size: 'medium', waitTimeoutMs: minutes(10) })
}, minutes(12))

const sh = async (script: string) => {
  const { stdout, stderr, exitCode } = await unit.exec(['bash', '-c', script], { timeoutMs: minutes(1) })
  expect(exitCode, stderr).toBe(0)
  return stdout.trim()
}

it('has a current Node, for which npm installs and runs programs', async () => {
  expect(Number(/^v(\d+)/.exec(await sh('node --version'))?.[1])).toBeGreaterThanOrEqual(22)
  const made =
    'mkdir -p /tmp/tool && cd /tmp/tool && echo "console.log(process.version)" >run.js && ' +
    'echo \'{"name":"tool","version":"1.0.0","bin":"run.js"}\' >package.json && sed -i "1i #!/usr/bin/env node" run.js && ' +
    'npm install --global --silent . && tool'
  expect(await sh(made)).toBe(await sh('node --version'))
})

it.each(['bash', 'curl', 'git', 'jq', 'less', 'patch', 'pip', 'python', 'rg', 'ssh', 'tmux', 'unzip', 'zip'])(
  'has %s',
  async (program) => {
    expect(await sh(`command -v ${program}`)).toMatch(/^\/usr\//)
  },
)

it('has the directory that hosted agents work in', async () => {
  expect(await sh('cd /workspace && ls -A')).toBe('')
})

it('compiles a program, also for a user who is not root', async () => {
  const source = 'int main(void) { return 7; }'
  const built = `cd && echo '${source}' >seven.c && cc seven.c && ./a.out; echo $?`
  const { stdout } = await unit.exec(['bash', '-c', built], { user: 'user' })
  expect(stdout).toBe('7\n')
  const { stdout: asRoot } = await unit.exec(['sudo', 'id', '-u'], { user: 'user' })
  expect(asRoot).toBe('0\n')
})
