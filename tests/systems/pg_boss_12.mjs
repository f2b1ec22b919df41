// A worker of pg-boss 12, for the tests of adapters.
//
// pg_boss_12.mjs URL setup        makes the tables, and puts two jobs into a queue of which one of a key may run
// pg_boss_12.mjs URL setup-default  makes the tables, and puts a job into a queue with the time that it has by default
// pg_boss_12.mjs URL clear        puts a job there that nobody has tried, in place of all
// pg_boss_12.mjs URL work [S]     works until it is ended, with a heartbeat of its instance each S seconds; says "working" when a job has begun
// pg_boss_12.mjs URL type TEXT    runs TEXT, which locktop has said to type, with `boss`
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.LOCKTOP_TEST_SYSTEMS}/node_modules/`)
const { PgBoss } = require('pg-boss-12')
const [connectionString, what, text] = process.argv.slice(2)
const instanceHeartbeatSeconds = what === 'work' && text ? Number(text) : 30
const boss = new PgBoss({ connectionString, supervise: false, schedule: false, instanceHeartbeatSeconds })
boss.on('error', (error) => console.error(error))
await boss.start()
if (what === 'setup') {
  await boss.createQueue('mail', { policy: 'singleton' })
  for (let job = 0; job < 2; job += 1) {
    await boss.send('mail', {}, { expireInSeconds: 10, retryLimit: 1, singletonKey: 'k' })
  }
  await boss.stop()
} else if (what === 'setup-default') {
  await boss.createQueue('mail')
  await boss.send('mail', {})
  await boss.stop()
} else if (what === 'clear') {
  await boss.deleteAllJobs('mail')
  await boss.send('mail', {})
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
