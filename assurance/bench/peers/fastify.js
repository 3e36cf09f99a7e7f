// The service as one would write it with Fastify, its schemas included.
import fastify from 'fastify'
import { create, get, KEY, list, listening, NOT_FOUND, UNAUTHORIZED } from './animals.js'

const pet = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    name: { type: 'string' },
    categoryId: { type: 'integer' },
    status: { type: 'string' },
  },
}
const newPet = { ...pet, required: ['name', 'categoryId'] }

const app = fastify()
app.addHook('onRequest', async (request, reply) => {
  if (request.headers.authorization === `Bearer ${KEY}`) return undefined
  return reply.code(401).send(UNAUTHORIZED)
})
app.get('/v1/pets', { schema: { response: { 200: { type: 'array', items: pet } } } }, async ({ query }) => list(query))
app.get('/v1/pets/:id', { schema: { response: { 200: pet } } }, async ({ params }, reply) => {
  const found = await get(params.id)
  return found ?? reply.code(404).send(NOT_FOUND)
})
app.post('/v1/pets', { schema: { body: newPet, response: { 201: pet } } }, async ({ body }, reply) =>
  reply.code(201).send(await create(body)),
)
await app.listen({ host: '127.0.0.1', port: 0 })
listening(app.server.address().port)
