// The page of the recipes, from the catalogue.

import { getRecipe, listRecipes } from '../../../domain/recipes/list.ts'
import { cell } from './document.ts'

export function recipesPage(): string {
  const recipes = listRecipes().recipes.map(({ name }) => getRecipe(name))
  return [
    '# Recipes',
    '',
    'A recipe makes one unit or several in one call, with passwords of their own, and answers how to reach them. Written from the catalogue of this service.',
    '',
    '| recipe | makes |',
    '|---|---|',
    ...recipes.map(({ name, title, description }) => `| [${title}](#${name}) | ${cell(description)} |`),
    '',
    ...recipes.flatMap(({ name, description, params, outputs, units, frontDoor }) => [
      `## ${name}`,
      '',
      description,
      '',
      ...(params.length === 0
        ? ['It takes no parameters.', '']
        : [
            '| parameter | type | default | |',
            '|---|---|---|---|',
            ...params.map((param) => {
              const type =
                param.options === null ? param.type : param.options.map((each) => `\`${each}\``).join(', ')
              const fallback = param.required ? 'required' : `\`${param.defaultValue ?? 'null'}\``
              return `| \`${param.name}\` | ${cell(type)} | ${cell(fallback)} | ${cell(param.description ?? '')} |`
            }),
            '',
          ]),
      '**Units**',
      '',
      '| unit | image | size | ports | volume |',
      '|---|---|---|---|---|',
      ...units.map(
        (unit) =>
          `| \`${unit.name}\` | \`${unit.image}\` | ${unit.size} | ${unit.ports.join(', ')} | ${unit.volume === null ? '' : `${unit.volume.gb} GB at \`${unit.volume.mount}\``} |`,
      ),
      '',
      '**Outputs**',
      '',
      ...outputs.map((output) => `- \`${output.name}\`: ${output.description}`),
      ...(frontDoor === null ? [] : ['- `URL`: where it is reached, if the create publishes it']),
      '',
    ]),
  ].join('\n')
}
