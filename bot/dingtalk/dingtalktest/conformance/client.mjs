// An echo bot on DingTalk's official Node SDK. Its only peculiarity: the SDK's hard-coded hosts are replaced by the
// simulator's address. It tells what it sees on stdout, one JSON object a line, and ends when stdin does.
import axios from 'axios';
import { DWClient, TOPIC_ROBOT } from 'dingtalk-stream';

const simulator = process.env.SIM_URL;
axios.interceptors.request.use((config) => {
  config.url = config.url.replace(/^https:\/\/o?api\.dingtalk\.com/, simulator);
  config.proxy = false;
  return config;
});

const tell = (event) => process.stdout.write(JSON.stringify(event) + '\n');
console.info = console.warn = console.error = (...args) => process.stderr.write(args.join(' ') + '\n');

const client = new DWClient({
  clientId: process.env.SIM_CLIENT_ID,
  clientSecret: process.env.SIM_CLIENT_SECRET,
  ua: 'conformance-node/1',
});

client.registerCallbackListener(TOPIC_ROBOT, async (frame) => {
  const message = JSON.parse(frame.data);
  client.socketCallBackResponse(frame.headers.messageId, null);
  tell({ event: 'message', msgId: message.msgId, msgtype: message.msgtype });
  if (message.msgtype !== 'text') return;
  const { data } = await axios.post(message.sessionWebhook, {
    msgtype: 'text',
    text: { content: `echo: ${message.text.content.trim()}` },
  });
  tell({ event: 'replied', msgId: message.msgId, errcode: data.errcode });
});

tell({ event: 'token', length: (await client.getAccessToken()).length });
client.connect();

process.stdin.resume();
process.stdin.on('end', () => {
  client.disconnect();
  process.exit(0);
});
