import { defineRecipe } from '../define.ts'
import { size } from '../params.ts'

export const browser = defineRecipe({
  name: 'browser',
  title: 'Chromium',
  description:
    'A browser without a window for Playwright, Puppeteer and others: they connect to its URL by the DevTools protocol (CDP).',
  tags: ['web', 'browser'],
  params: { size: size('medium') },
  secrets: [],
  units: {
    main: ({ params }) => ({
      image: 'berth.local/browser:1',
      size: params.size,
      ports: [9222],
      healthcheck: {
        cmd: ['curl', '--fail', '--silent', '--output', '/dev/null', 'http://127.0.0.1:9222/json/version'],
        timeoutMs: 120_000,
      },
    }),
  },
  frontDoor: { unit: 'main', port: 9222 },
  outputs: {
    CDP_URL: {
      description: 'Where siblings in the team connect; from elsewhere, use the URL of an expose.',
      value: ({ host }) => `http://${host.main}:9222`,
    },
  },
})
