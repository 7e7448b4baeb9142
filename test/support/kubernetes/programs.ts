// Programs of Kubernetes, built once from their modules into a cache: a control plane in one program, and the tools that its
// users have. The first build takes ten minutes of processor time.

import { createHash } from 'node:crypto'
import { access, mkdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { loadBuildSettings } from '../../../src/config.ts'
import { HOUR } from '../../../src/lib/clock.ts'
import { runOrThrow, SAFE_PATH } from '../../../src/lib/process.ts'
import { project } from '../clients.ts'

const VERSION = 'v1.36.3'
const source = join(project, 'test/kubernetes/control-plane')
const stamp = `-s -w -X k8s.io/component-base/version.gitVersion=${VERSION}`

/** By name, what is given to `go`; `{}` is the file to write. */
const programs = {
  'berth-kube': ['build', '-p', '2', '-ldflags', stamp, '-o', '{}', '.'],
  kubectl: ['build', '-p', '2', '-ldflags', stamp, '-o', '{}', 'k8s.io/kubernetes/cmd/kubectl'],
  helm: ['install', '-p', '2', '-ldflags', '-s -w', 'helm.sh/helm/v4/cmd/helm@v4.3.1'],
  kubeconform: [
    'install',
    '-p',
    '2',
    '-ldflags',
    '-s -w',
    'github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0',
  ],
} as const

const unlessThere =
  'test -e "$1" && exit; file=$1 built=$2; shift 2; nice -n 19 go "$@" && mv "$built" "$file"'

/** Returns the path of a program. Throws with the output of the build if it fails. */
export async function kubernetesProgram(name: keyof typeof programs): Promise<string> {
  const directory = await cacheDirectory()
  const file = join(directory, name)
  if (await exists(file)) return file
  const building = join(directory, 'building')
  await mkdir(building, { recursive: true })
  const built = join(building, name)
  const args = programs[name].map((each) => (each === '{}' ? built : each))
  // Test files that want it at the same time wait for one build.
  const locked = ['--close', join(directory, 'lock'), 'sh', '-c', unlessThere, 'sh', file, built, ...args]
  await runOrThrow('flock', locked, {
    cwd: source,
    env: {
      PATH: `${SAFE_PATH}:/usr/local/go/bin`,
      ...loadBuildSettings(),
      CGO_ENABLED: '0',
      GOBIN: building,
    },
    timeoutMs: HOUR,
  })
  return file
}

async function cacheDirectory(): Promise<string> {
  const all = process.env.BERTH_TEST_KUBERNETES ?? join(homedir(), '.cache/berth-kubernetes')
  const hash = createHash('sha256').update(await readFile(join(source, 'go.sum')))
  const key = hash.update(await readFile(join(source, 'main.go'))).digest('hex')
  const directory = join(all, key.slice(0, 16))
  await mkdir(directory, { recursive: true })
  return directory
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  )
}
