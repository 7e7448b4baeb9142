// The software bill of materials of the image (CycloneDX): npm's own of the lock file, with the packages of Debian and the
// modules of gVisor, by the package URLs that scanners look them up with.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { BUILT_VERSION } from '../../src/engine/oci/runsc-build/pinned.ts'
import { type DebianPackage, SUITE } from './debian.ts'

const run = promisify(execFile)

type Component = { 'bom-ref': string; [name: string]: unknown }
type Bill = {
  serialNumber: string
  metadata: { timestamp: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

export async function billOfMaterials({
  project,
  version,
  epoch,
  debian,
  runsc,
}: {
  project: string
  version: string
  /** In seconds. */
  epoch: number
  debian: DebianPackage[]
  /** The program. */
  runsc: Buffer
}): Promise<string> {
  const args = ['sbom', '--sbom-format=cyclonedx', '--omit=dev', '--package-lock-only', '--workspaces=false']
  const { stdout } = await run('npm', args, { cwd: project, maxBuffer: 64 * 1024 * 1024 })
  const bill = JSON.parse(stdout) as Bill
  const added = [...debian.map(debianComponent), gvisorComponent(runsc), ...goComponents(runsc)]
  bill.components.push(...added)
  const whole = bill.dependencies.find(({ ref }) => ref === bill.metadata.component['bom-ref'])
  whole?.dependsOn?.push(...added.map((each) => each['bom-ref']))
  bill.metadata.component = { ...bill.metadata.component, type: 'container', name: 'berth', version }
  bill.metadata.timestamp = new Date(epoch * 1000).toISOString()
  bill.serialNumber = serialNumberOf(JSON.stringify({ ...bill, serialNumber: '' }))
  return `${JSON.stringify(bill, null, 1)}\n`
}

function debianComponent({ name, version, architecture, source }: DebianPackage): Component {
  const upstream = source === name ? '' : `&upstream=${encodeURIComponent(source)}`
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}&distro=${SUITE}${upstream}`
  return { 'bom-ref': purl, type: 'library', name, version, purl }
}

function gvisorComponent(runsc: Buffer): Component {
  return {
    'bom-ref': 'runsc',
    type: 'application',
    name: 'runsc',
    version: BUILT_VERSION,
    licenses: [{ license: { id: 'Apache-2.0' } }],
    hashes: [{ alg: 'SHA-256', content: createHash('sha256').update(runsc).digest('hex') }],
  }
}

/** Go writes into a program what it was built from. */
function goComponents(program: Buffer): Component[] {
  const found = program.toString('latin1').matchAll(/\n(?:mod|dep)\t([\w./~-]+)\t(v[\w.+-]+)(?=[\t\n])/g)
  return [...found].map(([, name = '', version = '']) => {
    const purl = `pkg:golang/${name}@${version}`
    return { 'bom-ref': purl, type: 'library', name, version, purl }
  })
}

/** A UUID that follows from the content: the same bill has the same. */
function serialNumberOf(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex')
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `a${hash.slice(17, 20)}`]
  return `urn:uuid:${[...parts, hash.slice(20, 32)].join('-')}`
}
