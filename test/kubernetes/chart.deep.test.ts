// The chart, rendered by helm and taken by a real API server.

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Api, openApi } from '../../src/kubernetes/api.ts'
import { project } from '../support/clients.ts'
import { type ControlPlane, startControlPlane } from '../support/kubernetes/control-plane.ts'
import { runOrThrow, SAFE_PATH } from '../../src/lib/process.ts'
import { kubernetesProgram } from '../support/kubernetes/programs.ts'
import { firstValues, kubectl, renderChart, runTool } from '../support/kubernetes/run.ts'

let plane: ControlPlane
let api: Api

beforeAll(async () => {
  plane = await startControlPlane()
  api = openApi(plane.access)
  await kubectl(plane.kubeconfig, ['create', 'namespace', 'berth'])
  await kubectl(plane.kubeconfig, ['apply', '-f', join(project, 'deploy/helm/berth/crds')])
}, 3_600_000)
afterAll(async () => {
  api?.close()
  await plane?.close()
})

const rendered = async (...more: string[]): Promise<string> => {
  const { exitCode, stdout, stderr } = await renderChart([...firstValues, ...more])
  expect([exitCode, stderr]).toEqual([0, ''])
  return stdout
}

it('the chart is not rendered without the nodes that are to run units, nor with a value that it does not know', async () => {
  const [repository = ''] = firstValues
  expect((await renderChart([repository])).stderr).toContain('hosts.nodeSelector is needed')
  expect((await renderChart([...firstValues, 'hosts.nodeSelectr=a'])).stderr).toContain(
    "'nodeSelectr' not allowed",
  )
  expect((await renderChart(firstValues.slice(1))).stderr).toContain('image.repository is needed')
})

it.each([
  ['as it is', []],
  [
    'with placeholders, a certificate and other services',
    ['placeholders.enabled=true', 'hosts.tlsSecret=apps', 'gateway.service.type=NodePort'],
  ],
])('the API server takes every field of the chart %s', async (_what, values) => {
  const args = ['apply', '--namespace', 'berth', '--dry-run=server', '--validate=strict', '-f', '-']
  const said = await kubectl(plane.kubeconfig, args, await rendered(...values))
  expect(said.split('\n').filter((line) => line !== '' && !line.endsWith(' (server dry run)'))).toEqual([])
  expect(said).toContain('daemonset.apps/berth-host created')
})

it('a field that is misspelt is found by the same command', async () => {
  const text = (await rendered()).replace('hostNetwork: true', 'hostNetwrk: true')
  const args = ['apply', '--namespace', 'berth', '--dry-run=server', '--validate=strict', '-f', '-']
  await expect(kubectl(plane.kubeconfig, args, text)).rejects.toThrow('hostNetwrk')
})

it('the chart with all that is optional is of the kinds that the schemas of the API server know', async () => {
  const directory = join(plane.directory, 'schemas')
  await writeSchemas(directory)
  const text = await rendered(
    'placeholders.enabled=true',
    'placeholders.keda.enabled=true',
    'placeholders.keda.prometheus=http://prometheus',
    'serviceMonitor.enabled=true',
    'database.cloudNativePg.enabled=true',
    'api.route.enabled=true',
    'api.route.gateway=edge',
    'api.route.hostname=berth.example.com',
  )
  const others = 'ScaledObject,ServiceMonitor,Cluster,HTTPRoute'
  const location = `${directory}/{{.ResourceKind}}.json`
  const args = ['-strict', '-summary', '-output', 'json', '-skip', others, '-schema-location', location]
  const { stdout, stderr } = await runTool('kubeconform', args, { stdin: text })
  expect(stderr).toBe('')
  const { resources, summary } = JSON.parse(stdout) as { resources: unknown; summary: Record<string, number> }
  expect(resources ?? []).toEqual([])
  expect(summary).toMatchObject({ invalid: 0, errors: 0, skipped: 4 })
  expect(summary['valid']).toBeGreaterThan(15)
})

it('deploy/kubernetes is what the chart renders, and the API server takes it', async () => {
  const kept = await readFile(join(project, 'deploy/kubernetes/berth.yaml'), 'utf8')
  expect(kept.slice(kept.indexOf('---'))).toBe((await rendered()).replace(/^\n*/, ''))
  const args = ['apply', '-k', join(project, 'deploy/kubernetes'), '--dry-run=server', '--validate=strict']
  expect(await kubectl(plane.kubeconfig, args)).toContain('deployment.apps/berth-server created')
})

it('kubectl berth is the CLI, and its units are listed by one more word', async () => {
  const cli = join(plane.directory, 'berth')
  await writeFile(cli, '#!/bin/sh\necho "$@"\n', { mode: 0o755 })
  const env = { PATH: `${join(project, 'deploy/kubernetes')}:${plane.directory}:${SAFE_PATH}` }
  const berth = async (...args: string[]) =>
    await runOrThrow(await kubernetesProgram('kubectl'), ['berth', ...args], { env, timeoutMs: 60_000 })
  expect(await berth('units', '--json')).toBe('ls --json\n')
  expect(await berth('exec', 'web', '--', 'echo', 'a  b')).toBe('exec web -- echo a  b\n')
})

/** Of every kind that the API server has, with all that it refers to. */
async function writeSchemas(directory: string): Promise<void> {
  await mkdir(directory)
  type Schema = { 'x-kubernetes-group-version-kind'?: { kind: string }[] }
  type Described = { components?: { schemas?: Record<string, Schema> } }
  const { paths } = (await api.call({ method: 'GET', path: '/openapi/v3' })) as {
    paths: Record<string, unknown>
  }
  for (const path of Object.keys(paths).filter((each) => /^apis?\/(?:[^/]+\/)?v\d/.test(each))) {
    const described = (await api.call({ method: 'GET', path: `/openapi/v3/${path}` })) as Described
    const schemas = described.components?.schemas ?? {}
    const text = JSON.stringify(schemas, (_key, value: unknown) => strictly(value))
    const definitions = JSON.parse(text.replaceAll('#/components/schemas/', '#/definitions/')) as Record<
      string,
      object
    >
    for (const [name, schema] of Object.entries(schemas)) {
      const kinds = schema['x-kubernetes-group-version-kind'] ?? []
      if (kinds.length !== 1) continue
      const file = `${directory}/${kinds[0]?.kind.toLowerCase()}.json`
      await writeFile(file, JSON.stringify({ ...definitions[name], definitions }))
    }
  }
}

/** A default beside a reference says nothing, and an object has no other fields than its own. */
function strictly(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('properties' in value)) return value
  return 'additionalProperties' in value ? value : { ...value, additionalProperties: false }
}
