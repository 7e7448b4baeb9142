import { defineRecipe } from '../define.ts'
import { files, size } from '../params.ts'
import { listensAt } from './listens-at.ts'

export const staticFiles = defineRecipe({
  name: 'static',
  title: 'Static files',
  description: 'A website of static files, served by nginx.',
  tags: ['web'],
  params: {
    files: files('/var/www/html', {
      description: 'The website; index.html is its front page.',
      example: { 'index.html': '<h1>hello</h1>' },
    }),
    size: size('nano'),
  },
  secrets: [],
  units: {
    main: ({ params }) => ({
      image: 'berth.local/nginx:1.22',
      size: params.size,
      cmd: ['nginx'],
      files: params.files,
      ports: [80],
      healthcheck: { cmd: listensAt(80), timeoutMs: 120_000 },
    }),
  },
  frontDoor: { unit: 'main', port: 80 },
  outputs: {},
})
