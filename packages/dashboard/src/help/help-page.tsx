// Links to the documentation and the API, and a form for a message to the operator; where no mail server would send it, whom to
// write to.

import { type ReactNode, useState } from 'react'
import { limits } from '../../../../src/contract/limits.ts'
import { berthOf } from '../api/client.ts'
import { explain } from '../api/explain.ts'
import { useHere } from '../shell/team-context.ts'
import { Button } from '../ui/button.tsx'
import { Copied } from '../ui/copy.tsx'
import { Field, inputClass, Select } from '../ui/field.tsx'
import { Card, KeyValue, PageHead } from '../ui/page-parts.tsx'
import { tellError } from '../ui/toast.tsx'
import styles from './help.module.css'

const topics = [
  { value: 'question', label: 'A question' },
  { value: 'bug', label: 'Something is broken' },
  { value: 'idea', label: 'An idea' },
] as const

const docs = [
  ['quick-start', 'Quick start', 'A unit by CLI, TypeScript, Python, curl or an agent'],
  ['install', 'Install', 'The CLI and the SDKs, served by this Berth'],
  ['guides/first-web-app', 'First web app', 'From a folder to a page at a URL'],
  ['troubleshooting', 'Troubleshooting', 'What an error means, and what to do'],
  ['api', 'API reference', 'Every call, with examples'],
] as const

export function HelpPage() {
  const { me } = useHere()
  return (
    <>
      <PageHead title="Help" />
      <div className={styles.page}>
        <Card title="Documentation">
          <ul className={styles.docs}>
            {docs.map(([path, title, about]) => (
              <li key={path}>
                <a href={`/docs/${path}`}>{title}</a>
                <span>{about}</span>
              </li>
            ))}
          </ul>
        </Card>
        <Card title="Contact the operator">
          {me.support.form ? <Message /> : <Whom email={me.support.email} isOperator={me.user.admin} />}
        </Card>
        <Card title="API">
          <KeyValue
            rows={[
              ['Address', <Copied key="api" text={`${me.apiUrl}`} label="Copy the address of the API" />],
              [
                'MCP',
                <Copied key="mcp" text={`${location.origin}/mcp`} label="Copy the address for MCP clients" />,
              ],
              [
                'Described in',
                <a key="doc" href="/v1/openapi.json">
                  /v1/openapi.json
                </a>,
              ],
              ...(me.user.admin
                ? [
                    [
                      'Hosts',
                      <a key="hosts" href="/hosts">
                        All hosts of this Berth
                      </a>,
                    ] satisfies [string, ReactNode],
                  ]
                : []),
            ]}
          />
        </Card>
      </div>
    </>
  )
}

/** Where a message would reach nobody. */
function Whom({ email, isOperator }: { email: string | null; isOperator: boolean }) {
  if (isOperator)
    return (
      <div className={styles.whom}>
        <p>You run this Berth, and it has no mail server, so nobody can write to you from here.</p>
        <p>
          Set <code>BERTH_SMTP_URL</code> for a form, or <code>BERTH_SUPPORT_EMAIL</code> for an address:{' '}
          <a href="/docs/settings">Settings</a>.
        </p>
        <p>
          For a fault of Berth itself, open an issue in the repository that you cloned. Add the output of{' '}
          <code>npm run doctor</code>.
        </p>
      </div>
    )
  return email === null ? (
    <p>This Berth sends no mail. Ask the person who gave you access.</p>
  ) : (
    <p className={styles.whom}>
      Write to <a href={`mailto:${email}`}>{email}</a>. {NO_SECRETS}
    </p>
  )
}

const NO_SECRETS = 'Never send keys or passwords.'

function Message() {
  const { team } = useHere()
  const [topic, setTopic] = useState<(typeof topics)[number]['value']>('question')
  const [message, setMessage] = useState('')
  const [ticket, setTicket] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const send = async () => {
    setBusy(true)
    try {
      const sent = await berthOf(team.id).support({ topic, message })
      setTicket(sent.ticket)
      setMessage('')
    } catch (error) {
      tellError(explain(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <form
      className={styles.form}
      aria-label="Contact the operator"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <Field label="Topic">
        {(props) => <Select id={props.id} value={topic} options={topics} onChange={setTopic} />}
      </Field>
      <Field label="Message" note={`The answer comes by mail. ${NO_SECRETS}`}>
        {(props) => (
          <textarea
            {...props}
            className={inputClass}
            rows={6}
            maxLength={limits.supportMessageLength}
            value={message}
            onChange={(event) => setMessage(event.target.value)}
          />
        )}
      </Field>
      <div>
        <Button
          type="submit"
          kind="main"
          busy={isBusy}
          why={message.trim() === '' ? 'Write something first.' : null}
        >
          Send
        </Button>
      </div>
      <p role="status">
        {ticket !== null && (
          <>
            Sent. The answer will name <code>{ticket}</code>.
          </>
        )}
      </p>
    </form>
  )
}
