// Adds animals without waiting for answers: each is a line below the form. Lines are sent in order, one at a time, and kept until they are
// added, also past a sign-in (sessionStorage, by account). A line that is sent twice adds one animal.
const form = document.querySelector('form.form')
const section = document.querySelector('[data-who]')
const [list, template] = ['ul', 'template'].map((part) => section.querySelector(part))
const [ended, kept] = section.querySelectorAll('.notice')
const inputs = [...form.querySelectorAll('.field input, select')]
const { name, categoryId, csrf } = form.elements
const done = form.querySelector('.form-end a')
const { who } = section.dataset
let isSending = false
/** What to open when all is added. */
let next

/** The Enter key presses the first button: here the one that stays. */
const [one, another] = ['list', 'another'].map((value) => form.querySelector(`button[value="${value}"]`))
one.before(another)
one.className = 'button'
another.className = 'button primary'

form.addEventListener('submit', (event) => {
  const isBlank = name.value.trim() === ''
  if (isBlank && section.hidden) return
  event.preventDefault()
  event.stopPropagation()
  next = event.submitter === one && 'list'
  // By a double click, or a key that is held.
  if (!isBlank) {
    const formId = crypto.getRandomValues(new Uint32Array(6)).join('-')
    add({ formId, ...Object.fromEntries(inputs.map((input) => [input.name, input.value])) })
    name.value = ''
  }
  void send()
})

/** The lines that are waiting, being saved or not added, oldest first. */
const lines = () => [...list.querySelectorAll('[data-state]')].toReversed()
const store = () => sessionStorage.setItem(who, JSON.stringify(lines().map(({ fields }) => fields)))

function add(fields) {
  const line = template.content.firstElementChild.cloneNode(true)
  list.prepend(Object.assign(line, { fields }))
  section.hidden = false
  show(line, 'waiting')
}

function show(line, state, problem = '', offers = []) {
  const [title, facts, wrong, choices] = line.querySelectorAll('bdi, .quiet-text, .problem, .offers')
  line.dataset.state = state
  title.textContent = line.fields.name
  facts.textContent = `${line.fields.categoryId} · ${state}`
  wrong.textContent = problem
  choices.replaceChildren(...offers)
  store()
}

async function send() {
  name.focus()
  if (isSending || !ended.hidden || !kept.hidden) return
  isSending = true
  let line
  do line = lines().find(({ dataset }) => dataset.state === 'waiting')
  while (line && (await isAnswered(line)))
  isSending = false
  // Who types on stays.
  if (next && lines().length === 0 && name.value === '') location.assign(list.dataset[next] ?? done.href)
}

/** Resolves with whether the next line can be sent. */
async function isAnswered(line) {
  show(line, 'saving…')
  const body = new URLSearchParams({ ...line.fields, csrf: csrf.value, next: 'line' })
  const signal = AbortSignal.timeout(30_000)
  const response = await fetch(form.action, { method: 'POST', body, signal }).catch(() => {})
  const text = await response?.text().catch(() => {})
  if (text === undefined) return show(line, 'waiting', 'No connection.')
  const page = new DOMParser().parseFromString(text, 'text/html')
  const find = (selector) => page.querySelector(selector)
  const added = find('[data-list]')
  if (added) {
    line.replaceWith(added.firstElementChild)
    store()
    done.textContent = 'Done'
    list.dataset.list = added.dataset.list
    history.replaceState(null, '', (form.action = added.dataset.page))
    return true
  }
  // To the sign-in, or to a form for who has signed in since.
  if (response.redirected) {
    ended.hidden = false
    return show(line, 'waiting')
  }
  // These answers may be others the next time.
  const isRefused = find('.wrong') || /4(?!00|08|25|29)../.test(response.status)
  const problem = find('.wrong .problem') ?? find('.notice.bad') ?? find('h1')
  const words = problem?.textContent.slice(0, 200) ?? `The answer was ${response.status}.`
  show(line, isRefused ? 'not added' : 'waiting', words, page.querySelectorAll('.offers [name]'))
  return isRefused
}

list.addEventListener('click', ({ target }) => {
  const [line, pressed] = [target.closest('[data-state]'), target.closest('button')]
  if (line && pressed?.value === 'edit') edit(line)
  else if (line && pressed) settle(line.fields.categoryId, pressed)
})

/** Puts a line back into the form, unless something is being typed there. */
function edit(line) {
  name.focus()
  if (name.value !== '') return
  for (const input of inputs) input.value = line.fields[input.name]
  line.remove()
  store()
}

/** Sends all lines of a category again, with what the button offers for it. */
function settle(category, { name: field, value }) {
  for (const line of lines()) {
    if (line.fields.categoryId !== category || line.dataset.state === 'saving…') continue
    if (field) line.fields[field] = value
    show(line, 'waiting')
  }
  if (field === 'use' && categoryId.value === category) categoryId.value = value
  void send()
}

kept.addEventListener('click', ({ target }) => {
  if (target.value === 'discard') for (const line of lines()) line.remove()
  kept.hidden ||= target.matches('button')
  store()
  void send()
})

done.addEventListener('click', (event) => {
  if (!isSending || name.value !== '') return
  event.preventDefault()
  next = 'done'
})

const ask = (event) => lines().length > 0 && event.preventDefault()
addEventListener('beforeunload', ask)
ended.addEventListener('click', () => removeEventListener('beforeunload', ask))

for (const fields of JSON.parse(sessionStorage.getItem(who) ?? '[]')) add(fields)
kept.hidden = lines().length === 0
