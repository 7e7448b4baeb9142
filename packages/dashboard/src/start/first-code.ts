// The first unit by code, in each language, with this Berth's address and a key in it. The CLI and the SDKs come from this
// Berth too.

import { version } from '@berth/sdk'
import { firstImage } from './first-tiles.tsx'

export const NO_KEY = 'YOUR_KEY'

/** A comment says how to install what the code needs. */
const under = (comment: string, code: string) => `${comment}\n${code}`

export const firstCode = {
  'Claude Code': (url) =>
    `claude mcp add --transport http berth ${url}/mcp\n# Say /mcp there and sign in. Then, for example:\n# "Run a Python unit on Berth and print 6 * 7 in it."`,
  CLI: (url, key) =>
    `curl -fsSL ${url}/install | sh\nexport PATH="$HOME/.local/bin:$PATH"\nexport BERTH_URL=${url}\nexport BERTH_API_KEY=${key}\nberth run --name first ${firstImage} -- python3 -c "print(6 * 7)"`,
  TypeScript: (url, key) =>
    under(
      `// npm install ${url}/packages/berth-sdk.tgz`,
      `import { Berth } from '@berth/sdk'\n\nconst berth = new Berth({ url: '${url}', apiKey: '${key}' })\nconst unit = await berth.units.create({ image: '${firstImage}', name: 'first' })\nconsole.log((await unit.exec('python3 -c "print(6 * 7)"')).stdout)`,
    ),
  Python: (url, key) =>
    under(
      `# pip install ${url}/packages/berth_sdk-${version}-py3-none-any.whl`,
      `from berth import Berth\n\nberth = Berth(url="${url}", api_key="${key}")\nunit = berth.units.create("${firstImage}", name="first")\nprint(unit.exec(["python3", "-c", "print(6 * 7)"]).stdout)`,
    ),
  curl: (url, key) =>
    `curl ${url}/v1/units \\\n  -H "authorization: Bearer ${key}" \\\n  -H "content-type: application/json" \\\n  -d '{"spec": {"name": "first", "image": "${firstImage}"}}'`,
} as const satisfies Record<string, (url: string, key: string) => string>

export type Language = keyof typeof firstCode

/** Claude Code signs in with the person, and needs no key. */
export const needsKey = (language: Language) => language !== 'Claude Code'
