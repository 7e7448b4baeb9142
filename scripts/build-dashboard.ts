// Builds the dashboard into packages/dashboard/dist, with .br and .gz beside each text file, and checks its sizes; also what
// the server needs to show its first view by itself. Does nothing where its sources, its packages and the build itself are as
// at the last time.
// Usage: node scripts/build-dashboard.ts [--force]

import { createHash } from 'node:crypto'
import { glob, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'
import { dashboardFaults, readManifest, stylesOf } from './dashboard-budget.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const root = `${project}packages/dashboard`
const out = `${root}/dist`

// A test may start this, and React would be built with all its warnings.
process.env.NODE_ENV = 'production'

const resolve = { alias: { '@berth/sdk': `${project}packages/sdk/src/index.ts` } }

const stamp = await stampOfSources()
const built = await readFile(`${out}/stamp`, 'utf8').catch(() => '')
if (built !== stamp || process.argv.includes('--force')) await buildAll()

async function buildAll(): Promise<void> {
  // A build that fails leaves the one that is there.
  const fresh = `${root}/dist-${process.pid}`
  try {
    await build({
      configFile: false,
      root,
      publicDir: false,
      logLevel: 'error',
      define: { __BUILD__: JSON.stringify(stamp) },
      resolve,
      build: {
        outDir: fresh,
        emptyOutDir: true,
        target: 'es2023',
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        manifest: 'manifest.json',
        reportCompressedSize: false,
        chunkSizeWarningLimit: 1000,
        // Libraries say `use client`, which means nothing here.
        rolldownOptions: {
          onwarn: () => {},
          // Dozens of small files would wait for each other on the six connections that a browser opens.
          output: { codeSplitting: { groups: [{ name: 'first', test: isOfFirstPage }] } },
        },
      },
    })
    await placeThemeScript(fresh)
    await compressTexts(fresh)
    await writeFirstView(fresh)
    const faults = dashboardFaults(await readManifest(fresh))
    if (faults.length > 0) throw new Error(`The dashboard is too large:\n${faults.join('\n')}`)
    await writeFile(`${fresh}/stamp`, stamp)
    await putInPlace(fresh)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

/** Libraries of every page, and the dashboard's calls of the API. */
function isOfFirstPage(path: string): boolean {
  const libraries = /\/node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack)\//
  return libraries.test(path) || /\/packages\/(sdk|dashboard)\/src\/(api\/)?[^/]*\.ts$/.test(path)
}

/** Another build of the same sources may come first, at any moment. */
async function putInPlace(fresh: string): Promise<void> {
  const old = `${fresh}-old`
  while ((await readFile(`${out}/stamp`, 'utf8').catch(() => '')) !== stamp) {
    await rename(out, old).catch(() => {})
    await rename(fresh, out).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
    await rm(old, { recursive: true, force: true })
  }
}

/** The script that runs before the first paint is in the page: a file of its own would hold the paint up. */
async function placeThemeScript(directory: string): Promise<void> {
  const source = await readFile(`${root}/src/theme.js`, 'utf8')
  const page = await readFile(`${directory}/index.html`, 'utf8')
  const link = '<script src="/assets/theme.js"></script>'
  if (!page.includes(link)) throw new Error('The page has no link of theme.js.')
  await writeFile(
    `${directory}/index.html`,
    page.replace(link, () => `<script>${source}</script>`),
  )
}

/** The styles of the first page in the order of their links, beside what `first-view.tsx` has. */
async function writeFirstView(directory: string): Promise<void> {
  const built = `${directory}/parts`
  await build({
    configFile: false,
    root,
    publicDir: false,
    logLevel: 'error',
    resolve,
    build: {
      ssr: 'src/first-view.tsx',
      outDir: built,
      emptyOutDir: true,
      rolldownOptions: { onwarn: () => {} },
    },
  })
  const { firstView } = (await import(`${built}/first-view.js`)) as { firstView: object }
  const page = await readFile(`${directory}/index.html`, 'utf8')
  const names = [...page.matchAll(/<link rel="stylesheet"[^>]*href="\/([^"]+)"/g)].map(
    ([, name = '']) => name,
  )
  const later = (await stylesOf(directory, 'src/start/first-run.tsx')).filter((name) => !names.includes(name))
  const read = async (files: string[]) =>
    (await Promise.all(files.map((name) => readFile(`${directory}/${name}`, 'utf8')))).join('\n')
  const parts = { ...firstView, sheet: await read(names), emptySheet: await read(later) }
  await writeFile(`${directory}/first-view.json`, JSON.stringify(parts))
  await rm(built, { recursive: true })
}

async function compressTexts(directory: string): Promise<void> {
  for await (const path of glob('**/*.{js,css,html,svg}', { cwd: directory })) {
    const text = await readFile(`${directory}/${path}`)
    const options = {
      params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: text.length },
    }
    await writeFile(`${directory}/${path}.br`, brotliCompressSync(text, options))
    await writeFile(`${directory}/${path}.gz`, gzipSync(text, { level: 9 }))
  }
}

async function stampOfSources(): Promise<string> {
  const paths = [
    'package-lock.json',
    'scripts/build-dashboard.ts',
    'scripts/dashboard-budget.ts',
    'packages/dashboard/index.html',
    'src/contract/audit-actions.ts',
    'src/contract/audit-sentences.ts',
    'src/contract/states.ts',
    'src/contract/limits.ts',
    'src/lib/money.ts',
    'src/lib/byte-size.ts',
    'src/lib/time-words.ts',
    'src/lib/key-spelling.ts',
  ]
  for await (const path of glob('packages/{dashboard,sdk}/src/**/*.*', { cwd: project })) paths.push(path)
  const hash = createHash('sha256')
  for (const path of paths.sort()) hash.update(path).update(digestOf(await readFile(`${project}${path}`)))
  return hash.digest('hex').slice(0, 16)
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
