// A worker of Graphile Worker, for the tests of adapters.
//
// graphile_worker.mjs URL setup    makes the tables, and puts two jobs into a named queue
// graphile_worker.mjs URL work     works until it is ended; says "working" when a job has begun
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.LOCKTOP_TEST_SYSTEMS}/node_modules/`)
const { makeWorkerUtils, run, Logger } = await import(require.resolve('graphile-worker'))
const [connectionString, what] = process.argv.slice(2)
const logger = new Logger(() => () => {})
if (what === 'setup') {
  const utils = await makeWorkerUtils({ connectionString, logger })
  await utils.migrate()
  await utils.addJob('Hang', {}, { queueName: 'serial' })
  await utils.addJob('Wait', {}, { queueName: 'serial' })
  await utils.release()
} else {
  const runner = await run({
    connectionString,
    logger,
    noHandleSignals: true,
    taskList: {
      Hang: async () => {
        console.log('working')
        await new Promise((resolve) => setTimeout(resolve, 3600_000))
      },
      Wait: async () => {}
    }
  })
  await runner.promise
}
