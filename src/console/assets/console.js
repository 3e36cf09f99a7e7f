// Makes the pages nicer where scripts run; every page is whole without it.

/** A button that copies, beside everything that is there to be copied. */
for (const source of document.querySelectorAll('[data-copy], [data-copy-field]')) {
  if (!navigator.clipboard) break
  const isField = source.hasAttribute('data-copy-field')
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'button quiet copy'
  button.textContent = 'Copy'
  button.setAttribute('aria-label', isField ? 'Copy the key' : 'Copy the line')
  const said = document.createElement('span')
  said.className = 'visually-hidden'
  said.setAttribute('role', 'status')
  button.addEventListener('click', () => void copy())

  async function copy() {
    try {
      await navigator.clipboard.writeText(isField ? source.value : source.textContent)
      button.textContent = 'Copied'
      said.textContent = 'Copied'
    } catch {
      button.textContent = 'Press Ctrl+C'
      if (isField) source.select()
      else getSelection().selectAllChildren(source)
    }
    setTimeout(() => {
      button.textContent = 'Copy'
      said.textContent = ''
    }, 2000)
  }

  const place = source.closest('pre') ?? source
  const frame = document.createElement('div')
  frame.className = place === source ? 'copy-line' : 'copy-block'
  place.replaceWith(frame)
  frame.append(place, button, said)
}

/** The key is there to be taken: selected when it is touched. */
for (const input of document.querySelectorAll('[data-copy-field]')) input.addEventListener('focus', () => input.select())

/** A second press of a button sends nothing again; the server would not take it twice either. */
for (const form of document.querySelectorAll('form[method="post"]')) {
  form.addEventListener('submit', (event) => {
    if (form.dataset.sent) event.preventDefault()
    form.dataset.sent = 'yes'
  })
}
addEventListener('pageshow', () => {
  for (const form of document.querySelectorAll('form[data-sent]')) delete form.dataset.sent
})

/** What is wrong is where one is. */
document.querySelector('.field.wrong input, .field.wrong select')?.focus()
