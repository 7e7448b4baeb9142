// Beside a form: the call that it makes, in a language of the person's choice.

import { useState } from 'react'
import { Code } from './copy.tsx'
import { Card } from './page-parts.tsx'
import { Segments } from './segments.tsx'

export function SameAsCode<Language extends string>({
  languages,
  codeIn,
}: {
  /** The first is shown until a person chooses. */
  languages: readonly [Language, ...Language[]]
  codeIn: (language: Language) => string
}) {
  const [language, setLanguage] = useState<Language>(languages[0])
  return (
    <Card title="The same as code">
      <Segments label="Language" value={language} options={languages} onChange={setLanguage} />
      <Code text={codeIn(language)} label={`the call in ${language}`} />
    </Card>
  )
}
