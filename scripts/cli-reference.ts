// docs/cli-reference.md: the help of every command of the CLI, on one page.

import { commands, groups } from '../packages/cli/src/commands.ts'
import { helpOf } from '../packages/cli/src/help.ts'

export function cliReference(): string {
  const sections = Object.entries(groups).flatMap(([title, names]) => [
    `## ${title}\n`,
    ...names.flatMap((name) => {
      const command = commands[name]
      return command ? [`### berth ${name}\n`, `\`\`\`text\n${helpOf(command)}\n\`\`\`\n`] : []
    }),
  ])
  return [
    '# Commands of the CLI\n',
    'Written by `npm run gen` from `--help` of each command. [cli.md](cli.md) is the page to begin with.\n',
    ...sections,
  ].join('\n')
}
