// The form of a recipe's parameters; beside it what it makes, and the same as code.

import type { Contract } from '@berth/sdk'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Explained, faultAt } from '../api/explain.ts'
import { pricingQuery } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { amount, rate } from '../ui/format.tsx'
import { Card, Failure, PageHead } from '../ui/page-parts.tsx'
import { SameAsCode } from '../ui/same-as-code.tsx'
import { ParamField } from './param-field.tsx'
import { codeOf, languages, paramsOf, startOf, type Values, withoutValues } from './params.ts'
import styles from './recipes.module.css'

export function RecipeForm({
  recipe,
  refused,
  isBusy,
  onRun,
}: {
  recipe: Contract.Recipe
  refused: Explained | null
  isBusy: boolean
  onRun: (body: Contract.CreateFromRecipe) => void
}) {
  const [values, setValues] = useState<Values>(() =>
    Object.fromEntries(recipe.params.map((parameter) => [parameter.name, startOf(parameter)])),
  )
  const [name, setName] = useState('')
  const [stack, setStack] = useState('')
  const [expose, setExpose] = useState<'no' | 'private' | 'public'>('no')
  const [isTried, setTried] = useState(false)
  const { params, faults } = paramsOf(recipe.params, values)
  const body: Contract.CreateFromRecipe = {
    recipe: recipe.name,
    ...(Object.keys(params).length > 0 && { params }),
    ...(name.trim() !== '' && { name: name.trim() }),
    ...(stack.trim() !== '' && { stack: stack.trim() }),
    ...(expose !== 'no' && { expose }),
  }
  const shown = { ...body, ...(body.params && { params: withoutValues(recipe.params, body.params) }) }
  const faultOf = (path: string) => faultAt(refused?.fields, path)
  const isField = (path: string) => /^(?:params|name|stack|expose)\b/.test(path)
  return (
    <>
      <PageHead title={recipe.title} />
      <p className={styles.about}>{recipe.description}</p>
      <div className={styles.halves}>
        <form
          className={styles.form}
          aria-label={recipe.title}
          onSubmit={(event) => {
            event.preventDefault()
            setTried(true)
            if (Object.keys(faults).length === 0) onRun(body)
          }}
        >
          {refused && !refused.fields.some(({ path }) => isField(path)) && <Failure {...refused} />}
          {recipe.params.map((parameter) => (
            <ParamField
              key={parameter.name}
              parameter={parameter}
              value={values[parameter.name] ?? ''}
              error={faultOf(`params.${parameter.name}`) ?? (isTried ? faults[parameter.name] : undefined)}
              onChange={(value) => setValues({ ...values, [parameter.name]: value })}
            />
          ))}
          <Field label="Unit name" note={`Optional. ${recipe.name} by default.`} error={faultOf('name')}>
            {(props) => (
              <input
                {...props}
                className={inputClass}
                maxLength={32}
                autoComplete="off"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
            )}
          </Field>
          <Field label="Stack" note="Optional. One of its own by default." error={faultOf('stack')}>
            {(props) => (
              <input
                {...props}
                className={inputClass}
                maxLength={32}
                autoComplete="off"
                value={stack}
                onChange={(event) => setStack(event.target.value)}
              />
            )}
          </Field>
          {recipe.frontDoor !== null && (
            <Field label="Publish it" error={faultOf('expose')}>
              {(props) => (
                <Select
                  id={props.id}
                  value={expose}
                  options={[
                    { value: 'no', label: 'not now' },
                    { value: 'private', label: 'by private link' },
                    { value: 'public', label: 'for everybody' },
                  ]}
                  onChange={setExpose}
                />
              )}
            </Field>
          )}
          <div>
            <Button type="submit" kind="main" busy={isBusy}>
              Create
            </Button>
          </div>
        </form>
        <aside className={styles.beside} aria-label="Creates">
          <Makes recipe={recipe} />
          <SameAsCode languages={languages} codeIn={(language) => codeOf(language, location.origin, shown)} />
        </aside>
      </div>
    </>
  )
}

function Makes({ recipe }: { recipe: Contract.Recipe }) {
  const { data: pricing } = useQuery(pricingQuery)
  const cents = recipe.units.reduce(
    (sum, { size }) => sum + (pricing?.sizes.find((each) => each.size === size)?.centsPerHour ?? 0),
    0,
  )
  const gb = recipe.units.reduce((sum, { volume }) => sum + (volume?.gb ?? 0), 0)
  const aDay = ((pricing?.volumeCentsPerGbMonth ?? 0) * gb) / 30
  return (
    <Card title="Creates">
      <ul>
        {recipe.units.map((unit) => (
          <li key={unit.name}>
            <b>{unit.name}</b>: {unit.size}
            {unit.volume === null ? '' : ` with a volume of ${unit.volume.gb} GB`}, <code>{unit.image}</code>
          </li>
        ))}
      </ul>
      <p className={styles.price}>
        {pricing &&
          `${rate(cents)} while it runs${gb > 0 ? `, and ${amount(aDay)} a day for its volume` : ''}. `}
        {recipe.outputs.length > 0 && `Shows ${recipe.outputs.map((output) => output.name).join(', ')}.`}
      </p>
    </Card>
  )
}
