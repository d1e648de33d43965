// One runner process: sends commands of protocol.h and waits for the answers.
import {spawn} from 'child_process';
import readline from 'readline';

const ANSWER_LIMIT_MS = 300_000;

export class Runner {
  #child;
  #lines;
  #ended;
  #failure = null;
  #started = process.hrtime.bigint();

  /** Starts `command` ([program, ...arguments]); its error output goes to ours. */
  constructor(name, command) {
    this.name = name;
    this.#child = spawn(command[0], command.slice(1), {stdio: ['pipe', 'pipe', 'inherit']});
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.on('error', (error) => { this.#failure = error; });
    // A pipe breaks because the runner ended, which its exit code tells better.
    this.#child.stdin.on('error', () => {});
    this.#lines = readline.createInterface({input: this.#child.stdout})[Symbol.asyncIterator]();
  }

  /** Milliseconds since the process was started. */
  get age() { return Number(process.hrtime.bigint() - this.#started) / 1e6; }

  /** The answer to one command; throws when the runner reports an error, ends or hangs. */
  async send(line) {
    this.#child.stdin.write(line + '\n');
    const timer = setTimeout(() => {
      this.#failure = new Error(`did not answer in ${ANSWER_LIMIT_MS / 1000} s`);
      this.#child.kill('SIGKILL');
    }, ANSWER_LIMIT_MS);
    const {value, done} = await this.#lines.next().finally(() => clearTimeout(timer));
    if (done) {
      await this.#ended;
      const {exitCode, signalCode} = this.#child;
      const reason = this.#failure?.message ?? `ended (${signalCode ?? exitCode})`;
      throw new Error(`${this.name}: "${line}": the runner ${reason}`);
    }
    const reply = JSON.parse(value);
    if (!reply.ok) throw new Error(`${this.name}: "${line}": ${reply.error}`);
    return reply;
  }

  async setInputs(files) {
    for (const file of files) await this.send(`input ${file}`);
  }

  async quit() {
    if (this.#child.stdin.writable) this.#child.stdin.end('quit\n');
    await this.#ended;
  }
}
