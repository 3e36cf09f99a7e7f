// The tour on a command line: prints its result, and the client itself, which must not show the key.
/* oxlint-disable no-console -- what console.log shows is part of the tour */
import { Petstore } from 'petstore-client'
import { tour } from './tour.js'

const [baseUrl, apiKey, hangingUrl, redirectingUrl] = process.argv.slice(2)
console.error(new Petstore({ apiKey, baseUrl }))
console.log(JSON.stringify(await tour({ baseUrl, apiKey, hangingUrl, redirectingUrl })))
