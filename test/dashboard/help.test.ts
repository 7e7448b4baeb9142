// The Help page: a form where a mail server sends what is written, and whom to write to where none does.

import { expect, it } from 'vitest'
import { accessibilityFaults } from '../support/axe.ts'
import { startDashboard } from '../support/dashboard.ts'
import { makeTeam } from '../support/make.ts'
import type { ServiceOptions } from '../support/service.ts'

const silent = { mail: { smtpUrl: null, from: 'berth@berth.test' } } satisfies ServiceOptions

async function openHelp(options: ServiceOptions, isOperator = false) {
  const dashboard = await startDashboard(options)
  const { service } = dashboard
  const team = await makeTeam(service)
  await service.app.db.updateTable('users').set({ admin: isOperator }).execute()
  const { page, context, faults } = await dashboard.open(team, '/t')
  await page.waitForURL(/\/units$/)
  await page.getByRole('link', { name: 'Help' }).click()
  await page.getByRole('heading', { name: 'Contact the operator' }).waitFor()
  const close = async () => {
    expect(await accessibilityFaults(page)).toEqual({})
    expect(faults).toEqual([])
    await context.close()
    await dashboard.close()
  }
  return { page, service, close, form: page.getByRole('form', { name: 'Contact the operator' }) }
}

it('a message of the Help form is mailed to support', async () => {
  const { page, service, form, close } = await openHelp({ supportEmail: 'support@operator.test' })
  await form.getByLabel('Message').fill('Where is my disk?')
  await form.getByRole('button', { name: 'Send' }).click()
  const said = await page.getByText(/^Sent\. The answer will name ticket_/).innerText()
  const ticket = /ticket_\w+/.exec(said)?.[0] ?? ''
  const mails = await service.mailTo('support@operator.test')
  expect(mails.find(({ subject }) => subject.includes(ticket))?.text).toContain('Where is my disk?')
  await close()
}, 120_000)

it.each([
  [
    'an address of support',
    { ...silent, supportEmail: 'support@operator.test' },
    false,
    'Write to support@operator.test.',
  ],
  ['no address', silent, false, 'Ask the person who gave you access.'],
  ['no address, for its operator', silent, true, 'open an issue in the repository'],
])(
  'without a mail server the Help page has no form: %s',
  async (_case, options, isOperator, words) => {
    const { page, form, close } = await openHelp(options, isOperator)
    await page.getByText(words).waitFor()
    expect(await form.count()).toBe(0)
    await close()
  },
  120_000,
)
