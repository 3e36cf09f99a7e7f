// The service as one would write it with Hono, on Bun.
import { Hono } from 'hono'
import { create, get, KEY, list, listening, NOT_FOUND, UNAUTHORIZED } from './animals.js'

const app = new Hono()
app.use(async (context, next) => {
  if (context.req.header('authorization') !== `Bearer ${KEY}`) return context.json(UNAUTHORIZED, 401)
  return next()
})
app.get('/v1/pets', async (context) => context.json(await list(context.req.query())))
app.get('/v1/pets/:id', async (context) => {
  const pet = await get(context.req.param('id'))
  return pet ? context.json(pet) : context.json(NOT_FOUND, 404)
})
app.post('/v1/pets', async (context) => context.json(await create(await context.req.json()), 201))
listening(Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: app.fetch }).port)
