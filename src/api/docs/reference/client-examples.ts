// Examples of each operation with the CLI and the TypeScript SDK, by `operationId`. `unit`, `stack` and `job` are
// results of an earlier call. An operation without an SDK method uses `berth.request(METHOD, PATH)`.

export type ClientExample = { cli?: string; ts?: string }

export const clientExamples: Record<string, ClientExample> = {
  hostedList: {
    cli: 'berth agents ls',
    ts: 'const environments = await berth.hostedAgents.list()',
  },
  hostedGet: {
    cli: 'berth agents sessions env_01AbC',
    ts: "const { environment, sessions } = await berth.hostedAgents.get('hosted_…')",
  },
  unitCreate: {
    cli: 'berth run --name web -p 3000 node:22 -- node /app/main.js',
    ts: "const unit = await berth.units.create({ image: 'node:22', name: 'web', ports: [3000], expose: 'public' })",
  },
  unitList: {
    cli: 'berth ls --stack shop',
    ts: "const units = await berth.units.list({ stack: 'shop' }).all()",
  },
  unitGet: { ts: "const unit = await berth.units.get('unit_…')" },
  unitDestroy: { cli: 'berth rm web', ts: 'await unit.destroy()' },
  unitExec: {
    cli: 'berth exec web -- node --version',
    ts: "const { exitCode, stdout } = await unit.exec(['node', '--version'], { cwd: '/app' })",
  },
  unitLogs: {
    cli: 'berth logs -f web',
    ts: 'for await (const { text } of unit.logs({ follow: true })) lines.push(text)',
  },
  unitMetrics: {
    cli: 'berth stats web',
    ts: 'const { run, disk } = await unit.metrics()',
  },
  unitEgressRead: { cli: 'berth egress web', ts: 'const { mode, allow } = await unit.egress()' },
  unitEgress: {
    cli: 'berth egress web --mode listed --allow preset:npm --allow api.github.com',
    ts: "await unit.setEgress({ mode: 'listed', allow: ['preset:npm', 'api.github.com'] })",
  },
  unitEgressCheck: {
    cli: 'berth egress web --check registry.npmjs.org:443',
    ts: "const { decision, reason } = await unit.checkEgress('registry.npmjs.org', 443)",
  },
  unitEgressLog: {
    cli: 'berth egress log web --refused',
    ts: "for await (const { host, entry } of unit.egressLog({ decision: 'refused' })) lines.push(`${host} ${entry}`)",
  },
  unitFileWrite: {
    cli: 'berth cp data.txt web:/app/data.txt',
    ts: "await unit.files.write('/app/data.txt', 'hello')",
  },
  unitFileWriteBytes: {
    cli: 'berth cp data.txt web:/app/data.txt',
    ts: "await unit.files.write('/app/data.txt', new Uint8Array([1, 2, 3]))",
  },
  unitFileRead: {
    cli: 'berth cp web:/app/data.txt data.txt',
    ts: "const text = await unit.files.readText('/app/data.txt')",
  },
  unitFileDelete: { ts: "await unit.files.delete('/app/data.txt')" },
  unitFileSend: { ts: "const content = await unit.files.readStream('/data/model.bin')" },
  unitFileReceive: {
    ts: "await unit.files.writeStream('/app/large.bin', new Blob([new Uint8Array(2_000_000)]))",
  },
  unitFileFacts: { ts: "const { type, owner } = await unit.files.facts('/app/data.txt')" },
  unitFileWatch: {
    ts: "for await (const { event, path } of unit.files.watch('/app')) lines.push(`${event} ${path}`)",
  },
  unitFileMove: { ts: "await unit.files.move('/app/draft.md', '/app/done/report.md')" },
  unitDirectoryMake: { ts: "await unit.files.makeDirectory('/app/cache', { mode: 0o700 })" },
  unitDirectoryList: {
    ts: "const entries = await unit.files.list('/app').all()",
  },
  unitArchiveRead: { ts: "const tar = await unit.files.archive('/app')" },
  unitArchiveWrite: { ts: "await unit.files.unpack('/app', await new Response(tar).blob())" },
  unitExpose: {
    cli: 'berth url web 3000',
    ts: "const { url } = await unit.expose(3000, { mode: 'private' })",
  },
  unitChange: { ts: "await unit.change({ timeToLive: '2h', metadata: { app: 'shop' } })" },
  unitStop: { cli: 'berth stop web', ts: 'await unit.stop()' },
  unitStart: { cli: 'berth start web', ts: 'await unit.start()' },
  unitSleep: { cli: 'berth sleep web 2h', ts: "await unit.sleep('2h')" },
  unitFork: { cli: 'berth fork web --name web-2', ts: "const copy = await unit.fork({ name: 'web-2' })" },
  processStart: { ts: "const job = await unit.processes.start('npm run build', { cwd: '/app' })" },
  processList: { cli: 'berth ps web', ts: 'const jobs = await unit.processes.list()' },
  processTable: { ts: 'const { processes } = await unit.processes.table()' },
  processSignalPid: { ts: "await unit.processes.signalPid(42, 'HUP')" },
  processRead: { ts: 'await job.refresh()' },
  processOutput: { ts: 'for await (const { text } of job.follow()) pieces.push(text)' },
  processSignal: { ts: "await job.signal('INT')" },
  processInput: { ts: "await job.write('yes\\n')" },
  processKeepAwake: { ts: 'await job.keepAwake(600_000)' },
  processDelete: { ts: 'await job.delete()' },
  unitCalls: { ts: "await unit.tellCalls([{ method: 'process/start', cmd: ['npm', 'test'] }])" },
  stackCreate: { ts: "const stack = await berth.stacks.create('shop')" },
  stackList: { cli: 'berth stack ls', ts: 'const stacks = await berth.stacks.list().all()' },
  stackGet: { ts: "const stack = await berth.stacks.find('shop')" },
  stackDestroy: { cli: 'berth stack rm shop', ts: 'await stack.destroy()' },
  stackFork: {
    cli: 'berth stack fork shop --into shop-try',
    ts: "const { units } = await stack.fork({ into: 'shop-try' })",
  },
  recipeList: { cli: 'berth recipe ls', ts: 'const recipes = await berth.recipes.list()' },
  recipeGet: { cli: 'berth recipe show postgres', ts: "const recipe = await berth.recipes.get('postgres')" },
  agentList: { ts: 'const { agents, seats } = await berth.agents()' },
  keyList: { cli: 'berth keys', ts: 'const keys = await berth.keys()' },
  eventFollow: { ts: 'for await (const { event, data } of berth.events()) heard.push({ event, data })' },
  auditList: {
    cli: 'berth audit -n 20',
    ts: 'const { items, next } = await berth.audit({ limit: 20 }).page()',
  },
  pricingRead: { ts: 'const prices = await berth.pricing()' },
  quotaRead: { cli: 'berth quota', ts: 'const quota = await berth.quota()' },
  usageRead: { cli: 'berth usage --days 7', ts: 'const usage = await berth.usage({ days: 7 })' },
  supportSend: { ts: "await berth.support({ topic: 'question', message: 'How do I …?' })" },
  meRead: { ts: "const me = await berth.request('GET', '/v1/me')" },
}
