// One small file to begin with, and one for each command: what is not called is not read.

import { fileURLToPath } from 'node:url'
import { defineConfig } from 'rolldown'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  input: { berth: at('src/main.ts') },
  platform: 'node',
  resolve: { alias: { '@berth/sdk': at('../sdk/src/index.ts') } },
  output: { dir: at('dist'), format: 'esm', cleanDir: true, chunkFileNames: '[name]-[hash].js' },
})
