// A form for a message to the operator, and links to the documentation of the API.

import { useState } from 'react'
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
          <Message />
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
            ]}
          />
        </Card>
      </div>
    </>
  )
}

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
      <Field label="Message" note="The answer comes by mail. Never send keys or passwords.">
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
