// The grammar of the fake's `sh -c`: commands joined by `;`, newline, `&&` or `||`, quotes, $NAME, and
// the redirections `>&2`, `> FILE` and `>> FILE`. Tests that need more run on a real engine.

export type Statement = {
  argv: string[]
  /** Run only if the one before succeeded (true) or failed (false); null: always. */
  ifPrevious: boolean | null
  target: { to: 'stderr' } | { path: string; append: boolean } | null
}

const TOKEN = /\s*(?:(&&|\|\||;|\n)|(>&2|>>|>)|((?:'[^']*'|"[^"]*"|[^\s;&|>'"])+))[^\S\n]*/y

export function parseScript(script: string, env: Record<string, string>): Statement[] {
  const statements: Statement[] = [empty(null)]
  let redirect: '>' | '>>' | null = null
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < script.trimEnd().length) {
    const at = TOKEN.lastIndex
    const match = TOKEN.exec(script)
    if (!match) throw new Error(`the fake shell cannot read: ${script.slice(at)}`)
    const [, joint, operator, word] = match
    const current = statements.at(-1) ?? empty(null)
    if (joint !== undefined) {
      statements.push(empty(joint === '&&' ? true : joint === '||' ? false : null))
    } else if (operator === '>&2') {
      current.target = { to: 'stderr' }
    } else if (operator === '>' || operator === '>>') {
      redirect = operator
    } else if (word !== undefined && redirect) {
      current.target = { path: expand(word, env), append: redirect === '>>' }
      redirect = null
    } else if (word !== undefined) {
      current.argv.push(expand(word, env))
    }
  }
  return statements
    .map((statement) => ({
      ...statement,
      argv: statement.argv[0] === 'exec' ? statement.argv.slice(1) : statement.argv,
    }))
    .filter((statement) => statement.argv.length > 0)
}

function empty(ifPrevious: boolean | null): Statement {
  return { argv: [], ifPrevious, target: null }
}

function expand(word: string, env: Record<string, string>): string {
  return word.replace(/'([^']*)'|"([^"]*)"|([^'"]+)/g, (_all, single, double, bare) =>
    typeof single === 'string' ? single : variables(String(double ?? bare), env),
  )
}

function variables(text: string, env: Record<string, string>): string {
  return text.replace(/\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g, (_all, braced, bare) => {
    return env[String(braced ?? bare)] ?? ''
  })
}
