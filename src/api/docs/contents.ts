// The pages of the documentation, in the order of the navigation. A page is a Markdown file of the project, or is
// generated from the program's own data. Pages below docs/ that are not listed here are served too (decisions).

import { existsSync } from 'node:fs'

export type Listed = {
  /** Below /docs; empty for the first page. */
  path: string
  title: string
  /** From the project's root. */
  file: string
}

type Entry = readonly [path: string, title: string, file?: string]

const sections = {
  'Get started': [
    ['', 'Berth', 'docs/README.md'],
    ['quick-start', 'Quick start'],
    ['install', 'Install'],
    ['guides/first-web-app', 'First web app'],
    ['connect', 'Connect an agent', 'docs/mcp.md'],
    ['comparison', 'Compared with others'],
  ],
  Concepts: [
    ['concepts/units', 'Units'],
    ['concepts/stacks', 'Stacks and names'],
    ['concepts/sleep', 'Sleep'],
    ['concepts/forks', 'Forks'],
    ['concepts/endpoints', 'Endpoints'],
    ['concepts/policies', 'Agents, policies and caps'],
    ['concepts/money', 'Money'],
  ],
  Guides: [
    ['guides/code', 'Run code and get its values'],
    ['guides/agent-sandbox', 'A sandbox for an agent'],
    ['guides/sleeping-database', 'A database that sleeps'],
    ['guides/frameworks', 'Agent frameworks'],
    ['guides/e2b', 'Programs for E2B'],
    ['guides/hosted-agents', 'Hosted agents'],
    ['guides/claim-and-spawn', 'A program for each claim'],
    ['guides/coding-agents', 'Claude Code and Codex in a unit'],
    ['guides/codex-elsewhere', 'Codex elsewhere'],
    ['guides/previews', 'Previews by fork'],
    ['guides/team-with-caps', 'A team with caps'],
    ['guides/security', 'Running untrusted code'],
    ['guides/egress', 'What a unit may reach'],
    ['guides/secrets', 'Secrets that a unit never holds'],
    ['guides/docker', 'Containers inside a unit'],
    ['guides/browser', 'A browser in a unit'],
    ['processes', 'Background processes'],
    ['terminal', 'Terminals'],
    ['files', 'Files'],
    ['endpoints', 'Clients of databases'],
    ['oauth', 'Sign-in for programs'],
    ['troubleshooting', 'Troubleshooting'],
  ],
  Reference: [
    ['api', 'REST API'],
    ['errors', 'Errors'],
    ['streams', 'Streams'],
    ['limits', 'Limits'],
    ['cli', 'CLI'],
    ['cli-reference', 'CLI commands'],
    ['sdk', 'TypeScript SDK'],
    ['sdk-reference', 'TypeScript reference'],
    ['python', 'Python library'],
    ['tools', 'MCP tools'],
    ['recipes', 'Recipes'],
    ['glossary', 'Glossary'],
  ],
  Operate: [
    ['operating', 'Operating'],
    ['kubernetes', 'Kubernetes'],
    ['certificates', 'Certificates and domains'],
    ['upgrade', 'Upgrade'],
    ['settings', 'Settings'],
    ['performance', 'Performance'],
    ['engine-directories', 'Directories of the engine'],
    ['verified', 'What was tested'],
    ['security-policy', 'Threat model', 'SECURITY.md'],
    ['changelog', 'Changes', 'CHANGELOG.md'],
  ],
  Contribute: [
    ['contributing', 'Contributing', 'CONTRIBUTING.md'],
    ['ARCHITECTURE', 'Architecture'],
    ['design', 'Design'],
    ['spec', 'Specification'],
    ['guarantees', 'Guarantees'],
    ['money', 'How money is counted'],
    ['adding-an-endpoint', 'Add an endpoint'],
    ['adding-a-recipe', 'Add a recipe'],
    ['adding-a-policy-field', 'Add a field to a policy'],
    ['adding-an-adapter', 'Add an adapter'],
    ['decisions/README', 'Decisions'],
  ],
} as const satisfies Record<string, readonly Entry[]>

/** Sections for operators and contributors, in which an address on loopback is not replaced. */
const ownAddresses = ['Operate', 'Contribute']

/** Pages that are generated from the program. All others are files, and a missing file is not listed. */
const written = new Set(['api', 'tools', 'recipes'])

const project = new URL('../../../', import.meta.url)

/** For whom a section is. A page shows the sections of its own readers, and leads to those of the others. */
export type Readers = 'users' | 'operators' | 'contributors'

const readersOf: Record<string, Readers> = { Operate: 'operators', Contribute: 'contributors' }

export type Section = { title: string; readers: Readers; fillsAddress: boolean; pages: Listed[] }

export const contents: readonly Section[] = Object.entries(sections).map(([title, pages]) => ({
  title,
  readers: readersOf[title] ?? 'users',
  fillsAddress: !ownAddresses.includes(title),
  pages: pages
    .map(([path, name, file = `docs/${path}.md`]: Entry) => ({ path, title: name, file }))
    .filter(({ path, file }) => written.has(path) || existsSync(new URL(file, project))),
}))

export const listed: readonly Listed[] = contents.flatMap(({ pages }) => pages)

/** For whom a page is. Those that are not listed are about how Berth is made, or belong to a listed one of users. */
export function readersOfPage(path: string | null): Readers {
  if (path === null) return 'users'
  if (/^(?:decisions|architecture)\//.test(path)) return 'contributors'
  return contents.find(({ pages }) => pages.some((page) => page.path === path))?.readers ?? 'users'
}

/** The address of a page for a browser. */
export function addressOf(path: string): string {
  return path === '' ? '/docs' : `/docs/${path}`
}

/** The address of the Markdown of a page. */
export function markdownAddressOf(path: string): string {
  return `/docs/${path === '' ? 'index' : path}.md`
}
