// `npm run image`: builds the image of Berth for a cluster, as an OCI layout, from Debian's packages, the lock file and this
// checkout. Servers and hosts run the same one. The same commit, packages of Debian and Go give the same digest.
//
// Usage: node scripts/image.ts [--out DIRECTORY] [--archive URL]
// `--archive`: Debian's, such as https://snapshot.debian.org/archive/debian/20261129T000000Z/, to build as on that day.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { debianLayer } from './image/debian.ts'
import { openLayout } from './image/layout.ts'
import { programLayer, RUNSC_IN_IMAGE } from './image/program.ts'
import { billOfMaterials } from './image/sbom.ts'

const run = promisify(execFile)
const project = fileURLToPath(new URL('..', import.meta.url))

const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: join(project, 'dist/image') },
    archive: { type: 'string', default: 'http://deb.debian.org/debian' },
  },
})

const git = async (...args: string[]) => (await run('git', args, { cwd: project })).stdout.trim()
const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as { version: string }
const revision = await git('rev-parse', 'HEAD')
/** In seconds, as reproducible builds have it: no file of the image is newer. */
const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? (await git('log', '-1', '--format=%ct')))

const work = await mkdtemp(join(tmpdir(), 'berth-image-'))
try {
  const fresh = `${options.out}.new`
  await rm(fresh, { recursive: true, force: true })
  const layout = await openLayout(join(fresh, 'oci'))
  say('fetching the packages of Debian')
  const debian = await debianLayer(layout, { archive: options.archive, epoch, work })
  say('fetching the packages of npm, and building what users install')
  const tree = join(work, 'tree')
  const program = await programLayer(layout, {
    project,
    tree,
    epoch,
    finish: async (directory) => {
      const runsc = await readFile(join(tree, RUNSC_IN_IMAGE))
      const bill = await billOfMaterials({ project, version, epoch, debian: debian.packages, runsc })
      for (const path of [join(directory, 'sbom.cdx.json'), join(fresh, 'sbom.cdx.json')])
        await writeFile(path, bill)
    },
  })
  const digest = await layout.finish({
    layers: [debian.layer, program],
    epoch,
    config: {
      Entrypoint: ['node', 'src/main.ts'],
      Cmd: ['all'],
      WorkingDir: '/opt/berth',
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
      Labels: {
        'org.opencontainers.image.title': 'berth',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.revision': revision,
        'org.opencontainers.image.licenses': 'Apache-2.0',
      },
    },
  })
  await mkdir(options.out, { recursive: true })
  await rm(options.out, { recursive: true })
  await rename(fresh, options.out)
  say(
    `built ${join(options.out, 'oci')}; push it with: skopeo copy oci:${join(options.out, 'oci')} docker://…`,
  )
  console.log(digest)
} finally {
  await rm(work, { recursive: true, force: true })
}

function say(text: string): void {
  console.error(`berth: ${text}`)
}
