// Runs the tools of Kubernetes' users against a control plane of the tests.

import { dirname, join } from 'node:path'
import { MINUTE } from '../../../src/lib/clock.ts'
import { run, type RunResult, SAFE_PATH } from '../../../src/lib/process.ts'
import { project } from '../clients.ts'
import { kubernetesProgram } from './programs.ts'

const chart = join(project, 'deploy/helm/berth')

type Options = { kubeconfig?: string; stdin?: string }

/** Never rejects for what the program itself says. */
export async function runTool(
  name: 'kubectl' | 'helm' | 'kubeconform',
  args: string[],
  { kubeconfig, stdin }: Options = {},
): Promise<RunResult> {
  const program = await kubernetesProgram(name)
  return await run(program, args, {
    timeoutMs: 5 * MINUTE,
    maxOutputBytes: 16 * 1024 * 1024,
    env: {
      PATH: SAFE_PATH,
      // They keep what they have read of a server there.
      HOME: dirname(program),
      ...(kubeconfig === undefined ? {} : { KUBECONFIG: kubeconfig }),
    },
    ...(stdin === undefined ? {} : { stdin }),
  })
}

/** Throws with what it said unless it exits with 0. Returns its standard output. */
export async function kubectl(kubeconfig: string, args: string[], stdin?: string): Promise<string> {
  const result = await runTool('kubectl', args, { kubeconfig, ...(stdin === undefined ? {} : { stdin }) })
  if (result.exitCode !== 0) throw new Error(`kubectl ${args.join(' ')}: ${result.stderr}`)
  return result.stdout
}

/** What a first installation takes. */
export const firstValues = ['image.repository=berth', 'hosts.nodeSelector.berth\\.dev/host=true']

/** @param values As of `--set-string`, but for true and false. */
export async function renderChart(values: string[]): Promise<RunResult> {
  const set = values.flatMap((value) => [
    /=(?:true|false)$/.test(value) && !value.startsWith('hosts.nodeSelector') ? '--set' : '--set-string',
    value,
  ])
  return await runTool('helm', ['template', 'berth', chart, '--namespace', 'berth', '--include-crds', ...set])
}
