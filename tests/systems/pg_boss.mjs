// A worker of pg-boss 10, for the tests of adapters.
//
// pg_boss.mjs URL setup        makes the tables, and puts a job into the queue
// pg_boss.mjs URL work         works until it is ended; says "working" when a job has begun
// pg_boss.mjs URL supervise    looks for jobs whose time is over, each second, until it is ended
// pg_boss.mjs URL type TEXT    runs TEXT, which locktop has said to type, with `boss`
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.LOCKTOP_TEST_SYSTEMS}/node_modules/`)
const PgBoss = require('pg-boss')
const [connectionString, what, text] = process.argv.slice(2)
const boss = new PgBoss({
  connectionString,
  supervise: what === 'supervise',
  schedule: false,
  maintenanceIntervalSeconds: 1
})
boss.on('error', (error) => console.error(error))
await boss.start()
if (what === 'setup') {
  await boss.createQueue('mail')
  await boss.send('mail', {}, { expireInSeconds: 10, retryLimit: 1 })
  await boss.stop()
} else if (what === 'work') {
  await boss.work('mail', async () => {
    console.log('working')
    await new Promise((resolve) => setTimeout(resolve, 3600_000))
  })
} else if (what === 'type') {
  const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor
  await new AsyncFunction('boss', text)(boss)
  await boss.stop()
}
