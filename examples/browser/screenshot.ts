// A picture of a page, made by a browser in a unit: node screenshot.ts https://example.com page.png
import { writeFile } from 'node:fs/promises'
import { Berth } from '@berth/sdk'
import { chromium } from 'playwright-core'

const [address = 'https://example.com', file = 'page.png'] = process.argv.slice(2)

const berth = new Berth()
const { unit, outputs } = await berth.recipes.run('browser', { expose: 'private' })
try {
  const browser = await chromium.connectOverCDP(outputs.URL ?? '')
  const page = await browser.newPage()
  await page.goto(address)
  await writeFile(file, await page.screenshot())
  process.stdout.write(`${await page.title()}\n`)
  await browser.close()
} finally {
  await unit.destroy()
}
