// For any text in any parameter of any recipe (reliability Z8): it is refused by the name of the parameter, or it
// arrives byte for byte as a value and nowhere else.

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AppError } from '../../contract/errors.ts'
import type { UnitSpec } from '../../contract/unit-spec.ts'
import { recipes } from './catalog.ts'
import { exampleOf, type Recipe } from './define.ts'

const parts = (
  `' " \` \\ $(id) \${IFS} ; && | > < % %00 @ : / # ? & = -- - ../ {{unit:db}} {{self:host}} * ~ ! é 日本 $$ ` +
  `app _ pg_ 0 __proto__ drop table users or 1=1`
)
  .split(' ')
  .concat('\n', '\r\n', '\t', ' ', '', '\0', '\ud800', '\u202e', '\u{1f600}')
const nasty = fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 6 }).map((all) => all.join(''))
/** What identifiers may be. */
const plain = fc.stringMatching(/^[a-z][a-z0-9_]{0,20}$/)

/** A request body cannot have the key __proto__ (api/http/json.ts). */
const key = fc.oneof(plain, nasty).filter((text) => text !== '__proto__')

const secrets = (recipe: Recipe) =>
  Object.fromEntries(recipe.secrets.map((name, i) => [name, `made-${i}-_${'x'.repeat(20)}`]))

type Made = ReturnType<Recipe['make']>

/** Returns what the recipe makes of the parameters, or null when it refuses them with a validation error. */
function makeOf(recipe: Recipe, given: Record<string, unknown>): Made | null {
  try {
    const params = recipe.parse(given)
    return recipe.make({
      name: 'name',
      stackName: 'stack',
      params,
      secrets: secrets(recipe),
    })
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    const { code, details } = error as { code: string; details: { path: string }[] }
    expect(code).toBe('validation')
    for (const { path } of details) expect(path).toMatch(/^params/)
    return null
  }
}

/** Everything in the spec of a unit that a program reads as more than a value: commands, paths, images, names. */
const readAsMore = ({ env, files, ...spec }: UnitSpec) =>
  JSON.stringify({ ...spec, env: Object.keys(env), files: Object.keys(files) })

const textParams = (recipe: Recipe) =>
  Object.entries(recipe.params).filter(([, { shown }]) => shown.type === 'string')
/** Most of the time: some values of a stricter form are drawn by chance too rarely, and one that is refused refuses all. */
const usualOf = (param: Recipe['params'][string]) => ({
  weight: 4,
  arbitrary: fc.constant(String('fallback' in param ? param.fallback : param.example)),
})
const asked = recipes.map((recipe) => [recipe.name, recipe] as const)

describe.each(asked)('the recipe %s', (_name, recipe) => {
  const usual = exampleOf(recipe)
  const byDefault = recipe.make({
    name: 'name',
    stackName: 'stack',
    params: recipe.parse(usual),
    secrets: secrets(recipe),
  })

  it('uses every text parameter as a value and nowhere else', () => {
    const given = fc.record(
      Object.fromEntries(
        textParams(recipe).map(([name, param]) => [name, fc.oneof(nasty, plain, usualOf(param))]),
      ),
    )
    let accepted = 0
    fc.assert(
      fc.property(given, (texts) => {
        const made = makeOf(recipe, { ...usual, ...texts })
        if (made === null) return
        accepted += 1
        expect(made.units.map(({ spec }) => readAsMore(spec))).toEqual(
          byDefault.units.map(({ spec }) => readAsMore(spec)),
        )
        const values = made.units.flatMap(({ spec }) => Object.values(spec.env))
        for (const text of Object.values(texts)) expect(values).toContain(text)
      }),
    )
    expect(accepted).toBeGreaterThan(0)
  })

  it('returns URLs with exactly the values of its parameters', () => {
    const given = fc.record(
      Object.fromEntries(textParams(recipe).map(([name]) => [name, fc.oneof(plain, nasty)])),
    )
    fc.assert(
      fc.property(given, (texts) => {
        const made = makeOf(recipe, { ...usual, ...texts })
        const addresses = Object.entries(made?.outputs ?? {}).filter(([name]) => name.endsWith('_URL'))
        const password = Object.values(secrets(recipe))[0] ?? ''
        for (const [, address] of addresses) {
          const url = new URL(address)
          expect(url.href.replace(/\/$/, '')).toBe(address)
          expect(url.hostname).toMatch(/^name(-db)?\.stack\.internal$/)
          expect(url.hash).toBe('')
          if (url.password !== '') expect(decodeURIComponent(url.password)).toBe(password)
          const { user, database } = texts
          if (user !== undefined) expect(decodeURIComponent(url.username)).toBe(user)
          if (database !== undefined) expect(decodeURIComponent(url.pathname)).toBe(`/${database}`)
        }
      }),
    )
  })

  it('passes files and environment on as they were sent', () => {
    const some = { ...usual } as { files?: object; env?: object }
    const [at] = Object.keys(some.files ?? {})
    let sentOn = 0
    fc.assert(
      fc.property(fc.dictionary(key, nasty, { maxKeys: 4 }), (texts) => {
        if (at !== undefined) {
          const made = makeOf(recipe, { ...usual, files: texts })
          const files = made?.units.at(-1)?.spec.files ?? {}
          const root = Object.keys(byDefault.units.at(-1)?.spec.files ?? {})[0]?.slice(0, -at.length)
          if (made) {
            const sent = Object.entries(texts).map(([path, text]) => [`${root}${path}`, text])
            expect(files).toEqual(Object.fromEntries(sent))
            for (const path of Object.keys(files)) expect(path).not.toMatch(/(^|\/)\.\.?(\/|$)|\/\/|\0/)
          }
        }
        if (!Object.hasOwn(recipe.params, 'env')) return
        const made = makeOf(recipe, { ...usual, env: texts })
        if (!made) return
        expect(made.units.at(-1)?.spec.env).toMatchObject(texts)
        if (Object.keys(texts).length > 0) sentOn += 1
      }),
    )
    if (Object.hasOwn(recipe.params, 'env')) expect(sentOn).toBeGreaterThan(0)
  })

  it('refuses values of a wrong type', () => {
    for (const name of Object.keys(recipe.params)) {
      for (const odd of [[], 1.5, true, 'a\0b', '\ud800', { a: {} }, -1, 1e9]) {
        if (makeOf(recipe, { ...usual, [name]: odd })) expect([name, odd]).toBe('refused')
      }
    }
    for (const name of ['__proto__', 'constructor', 'toString', 'x y', '']) {
      const given = Object.fromEntries([...Object.entries(usual), [name, 'x']])
      expect([name, makeOf(recipe, given)]).toEqual([name, null])
    }
  })
})
