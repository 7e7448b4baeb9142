// Builds the dashboard into packages/dashboard/dist, with .br and .gz beside each text file, and checks its sizes. Does
// nothing where its sources, its packages and the build itself are as at the last time.
// Usage: node scripts/build-dashboard.ts [--force]

import { createHash } from 'node:crypto'
import { glob, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'vite'
import { dashboardFaults, readManifest } from './dashboard-budget.ts'

const project = fileURLToPath(new URL('..', import.meta.url))
const root = `${project}packages/dashboard`
const out = `${root}/dist`

// A test may start this, and React would be built with all its warnings.
process.env.NODE_ENV = 'production'

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
      resolve: { alias: { '@berth/sdk': `${project}packages/sdk/src/index.ts` } },
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

/** The script that runs before the first paint: not a module, so Vite leaves it alone. */
async function placeThemeScript(directory: string): Promise<void> {
  const source = await readFile(`${root}/src/theme.js`, 'utf8')
  const name = `assets/theme-${digestOf(source).slice(0, 8)}.js`
  await writeFile(`${directory}/${name}`, source)
  const page = await readFile(`${directory}/index.html`, 'utf8')
  await writeFile(`${directory}/index.html`, page.replace('/assets/theme.js', `/${name}`))
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
    'src/contract/states.ts',
    'src/contract/limits.ts',
  ]
  for await (const path of glob('packages/{dashboard,sdk}/src/**/*.*', { cwd: project })) paths.push(path)
  const hash = createHash('sha256')
  for (const path of paths.sort()) hash.update(path).update(digestOf(await readFile(`${project}${path}`)))
  return hash.digest('hex').slice(0, 16)
}

function digestOf(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}
