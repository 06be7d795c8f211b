-- Wireshark dissector for Viaduct's frames (docs/wire.md): the link, StarT-X and MBCF above it.
--
--   tshark -X lua_script:tools/wireshark/viaduct.lua -r FILE.pcap
--   Wireshark: copy this file to ~/.local/lib/wireshark/plugins
--
-- Filters: viaduct.type, viaduct.lane, viaduct.sequence, viaduct.checksum.bad, startx.tag, mbcf.key ...

local bit = bit or bit32
local band, rshift, bxor = bit.band, bit.rshift, bit.bxor

local ETHER_TYPE = 0x88b5
local VERSION = 3
local ETHERNET_HEADER, LINK_HEADER, MESSAGE_HEADER, ACK_BLOCK, HANDSHAKE = 14, 24, 4, 8, 64

local TYPES = { [1] = "data", [2] = "ack", [3] = "hello", [4] = "welcome", [5] = "retry",
                [6] = "goodbye" }
local LANES = { [0] = "high", [1] = "low", [2] = "bulk" }
local PROTOCOLS = { [1] = "StarT-X", [2] = "MBCF", [15] = "test" }
local STARTX_KINDS = { [0] = "pio", [1] = "queue", [2] = "rdma request", [3] = "rdma grant",
                       [4] = "rdma refuse", [5] = "rdma data", [6] = "rdma last",
                       [7] = "rdma done" }

local link = Proto("viaduct", "Viaduct link")
link.prefs.verify = Pref.bool("Verify the checksum", true, "CRC32C of seed, payload and header")

local l = {
  version = ProtoField.uint8("viaduct.version", "Version", base.DEC, nil, 0xf0),
  type = ProtoField.uint8("viaduct.type", "Type", base.DEC, TYPES, 0x0f),
  lane = ProtoField.uint8("viaduct.lane", "Lane", base.DEC, LANES, 0x03),
  unordered = ProtoField.bool("viaduct.unordered", "Unordered", 8, nil, 0x04),
  want = ProtoField.bool("viaduct.want", "Wants more credit", 8, nil, 0x08),
  answer = ProtoField.bool("viaduct.answer", "Acknowledge at once", 8, nil, 0x10),
  length = ProtoField.uint16("viaduct.length", "Payload length"),
  connection = ProtoField.uint16("viaduct.connection", "Connection"),
  token = ProtoField.uint32("viaduct.token", "Token", base.HEX),
  sequence = ProtoField.uint32("viaduct.sequence", "Sequence"),
  ack = ProtoField.uint32("viaduct.ack", "Acknowledged before"),
  credit = ProtoField.uint16("viaduct.credit", "Credit from there on"),
  checksum = ProtoField.uint32("viaduct.checksum", "CRC32C", base.HEX),
  checksum_bad = ProtoField.bool("viaduct.checksum.bad", "Bad checksum"),
  retransmission = ProtoField.bool("viaduct.retransmission", "Sent before"),
  message = ProtoField.none("viaduct.message", "Message"),
  message_length = ProtoField.uint16("viaduct.message.length", "Length"),
  message_protocol = ProtoField.uint8("viaduct.message.protocol", "Protocol", base.DEC, PROTOCOLS),
  message_kind = ProtoField.uint8("viaduct.message.kind", "Kind"),
  message_bytes = ProtoField.bytes("viaduct.message.bytes", "Bytes"),
  block = ProtoField.none("viaduct.block", "Acknowledgement"),
  block_lane = ProtoField.uint8("viaduct.block.lane", "Lane", base.DEC, LANES, 0x03),
  block_words = ProtoField.uint8("viaduct.block.words", "Bitmap words"),
  block_want = ProtoField.bool("viaduct.block.want", "Wants more credit", 8, nil, 0x08),
  block_bitmap = ProtoField.bytes("viaduct.block.bitmap", "Bitmap"),
  received = ProtoField.uint32("viaduct.block.received", "Arrived out of order"),
  job = ProtoField.uint64("viaduct.job", "Job key", base.HEX),
  incarnation = ProtoField.uint64("viaduct.incarnation", "Incarnation", base.HEX),
  echo = ProtoField.uint64("viaduct.echo", "Receiver's incarnation", base.HEX),
  cookie = ProtoField.uint64("viaduct.cookie", "Cookie", base.HEX),
  my_connection = ProtoField.uint16("viaduct.my_connection", "Connection to use"),
  my_token = ProtoField.uint32("viaduct.my_token", "Token to use", base.HEX),
  my_seed = ProtoField.uint32("viaduct.my_seed", "Seed to use", base.HEX),
  first = ProtoField.uint32("viaduct.first_sequence", "First sequence"),
  window = ProtoField.uint16("viaduct.window", "Window"),
  mtu = ProtoField.uint16("viaduct.mtu", "MTU"),
  no_checksum = ProtoField.bool("viaduct.no_checksum", "Does without checksums", 8, nil, 0x01),
  no_room = ProtoField.bool("viaduct.no_room", "No room for another peer", 8, nil, 0x02),
  padding = ProtoField.none("viaduct.padding", "Padding to the connection's MTU"),
}
link.fields = l

local bad_length = ProtoExpert.new("viaduct.bad_length", "Shorter than its header says",
                                   expert.group.MALFORMED, expert.severity.ERROR)
local bad_checksum = ProtoExpert.new("viaduct.bad_checksum", "Checksum does not match",
                                     expert.group.CHECKSUM, expert.severity.ERROR)
local bad_version = ProtoExpert.new("viaduct.bad_version", "Unknown version or type",
                                    expert.group.PROTOCOL, expert.severity.WARN)
local again = ProtoExpert.new("viaduct.again", "This sequence number was sent before",
                              expert.group.SEQUENCE, expert.severity.NOTE)
link.experts = { bad_length, bad_checksum, bad_version, again }

local startx = Proto("startx", "StarT-X")
local s = {
  kind = ProtoField.uint8("startx.kind", "Kind", base.DEC, STARTX_KINDS),
  tag = ProtoField.uint32("startx.tag", "Tag", base.HEX),
  word = ProtoField.uint32("startx.word", "Word", base.HEX),
  transfer = ProtoField.uint32("startx.transfer", "Transfer"),
  slot = ProtoField.uint32("startx.slot", "Slot"),
  key = ProtoField.uint32("startx.key", "Key", base.HEX),
  length = ProtoField.uint64("startx.length", "Length of the transfer"),
  offset = ProtoField.uint64("startx.offset", "Offset"),
  data = ProtoField.bytes("startx.data", "Data"),
}
startx.fields = s
local bad_message = ProtoExpert.new("startx.bad_message", "Malformed message",
                                    expert.group.MALFORMED, expert.severity.ERROR)
startx.experts = { bad_message }

local MBCF_KINDS = { [0] = "write", [1] = "write+then", [2] = "long write", [3] = "long more",
                     [4] = "long then", [5] = "append", [6] = "append more", [7] = "read",
                     [8] = "atomic", [9] = "signal", [10] = "fence", [11] = "answer",
                     [12] = "value", [13] = "data", [14] = "want", [15] = "give back",
                     [16] = "grant", [17] = "recall", [18] = "gone" }
local MBCF_STATUS = { [0] = "done", [2] = "peer ended", [3] = "no such key", [4] = "withdrawn",
                      [5] = "no right", [6] = "out of range", [7] = "misaligned",
                      [8] = "the key names something else", [9] = "no credit", [10] = "too long" }
local mbcf = Proto("mbcf", "MBCF")
local m = {
  kind = ProtoField.uint8("mbcf.kind", "Kind", base.DEC, MBCF_KINDS, 0x7f),
  silent = ProtoField.bool("mbcf.silent", "Silent", 8, nil, 0x80),
  key = ProtoField.uint64("mbcf.key", "Key", base.HEX),
  offset = ProtoField.uint64("mbcf.offset", "Offset"),
  id = ProtoField.uint32("mbcf.id", "Request", base.HEX),
  length = ProtoField.uint64("mbcf.length", "Length"),
  has_then = ProtoField.uint32("mbcf.has_then", "A second part follows"),
  then_kind = ProtoField.uint8("mbcf.then", "Second part", base.DEC,
                               { [1] = "entry", [2] = "signal", [3] = "flag" }),
  flag = ProtoField.uint64("mbcf.flag", "Value of the flag"),
  width = ProtoField.uint8("mbcf.width", "Width"),
  entry = ProtoField.uint16("mbcf.entry", "Bytes of the entry"),
  operand = ProtoField.uint64("mbcf.operand", "Operand"),
  compare = ProtoField.uint64("mbcf.compare", "Expected"),
  op = ProtoField.uint8("mbcf.op", "Operation", base.DEC,
                        { [0] = "swap", [1] = "fetch-and-add", [2] = "compare-and-swap" }),
  reserved = ProtoField.uint16("mbcf.reserved", "Reserved"),
  status = ProtoField.uint32("mbcf.status", "Status", base.DEC, MBCF_STATUS),
  value = ProtoField.uint64("mbcf.value", "Former value"),
  writer = ProtoField.uint32("mbcf.writer", "Writer", base.HEX),
  blocks = ProtoField.uint32("mbcf.blocks", "Blocks"),
  capacity = ProtoField.uint32("mbcf.capacity", "Blocks of the FIFO"),
  data = ProtoField.bytes("mbcf.data", "Data"),
}
mbcf.fields = m
local bad_request = ProtoExpert.new("mbcf.bad_message", "Malformed message",
                                    expert.group.MALFORMED, expert.severity.ERROR)
mbcf.experts = { bad_request }

-- Of the Ethernet header, which the checksum covers and which our tvb begins behind.
local eth_dst, eth_src = Field.new("eth.dst"), Field.new("eth.src")

local crc_table = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    c = band(c, 1) ~= 0 and bxor(0x82f63b78, rshift(c, 1)) or rshift(c, 1)
  end
  crc_table[i] = c
end

local function crc32c(crc, bytes)
  for i = 0, bytes:len() - 1 do
    crc = bxor(crc_table[band(bxor(crc, bytes:get_index(i)), 0xff)], rshift(crc, 8))
  end
  return crc
end

-- By destination, connection and token: what the checksums of such frames begin with, if the
-- handshake that told it was captured. Hellos have none.
local seeds = {}
local NO_SEED = ByteArray.new("00000000")
local function seed_of(tvb)
  return tvb(0, 2):le_uint() == 0 and NO_SEED or
         seeds[eth_dst().range:bytes():tohex() .. tvb(0, 6):bytes():tohex()]
end

-- The seed, the route (Ethernet header, connection, token), the payload, the rest of the header up
-- to the checksum, two bytes 0. nil: the Ethernet header or the seed is not known.
local function computed_checksum(tvb, length)
  local dst, src = eth_dst(), eth_src()
  local seed = dst and src and seed_of(tvb)
  if not seed then return nil end
  local crc = 0xffffffff
  crc = crc32c(crc, seed)
  crc = crc32c(crc, dst.range:bytes())
  crc = crc32c(crc, src.range:bytes())
  crc = crc32c(crc, ByteArray.new(string.format("%04x", ETHER_TYPE)))
  crc = crc32c(crc, tvb(0, 6):bytes())
  if length > 0 then crc = crc32c(crc, tvb(LINK_HEADER, length):bytes()) end
  crc = crc32c(crc, tvb(6, LINK_HEADER - 10):bytes())
  crc = crc32c(crc, ByteArray.new("0000"))
  return bxor(crc, 0xffffffff) % 0x100000000
end

-- False: it is wrong.
local function add_checksum(tvb, tree, length)
  local range = tvb(LINK_HEADER - 4, 4)
  local item = tree:add_le(l.checksum, range)
  if range:le_uint() == 0 then
    item:append_text(" (not used)")
    return true
  end
  if not link.prefs.verify then return true end
  local right = computed_checksum(tvb, length)
  if not right then
    item:append_text(" (not verified: the handshake was not captured)")
    return true
  end
  local bad = range:le_uint() ~= right
  tree:add(l.checksum_bad, range, bad):set_generated()
  item:append_text(bad and string.format(" (wrong, should be 0x%08x)", right) or " (right)")
  if bad then item:add_proto_expert_info(bad_checksum) end
  return not bad
end

-- What the messages of a kind begin with: rows of fields and their sizes.
local function row(...)
  local all = {}
  for _, part in ipairs({...}) do
    for _, field in ipairs(part) do all[#all + 1] = field end
  end
  return all
end
local right = { { s.transfer, 4 }, { s.slot, 4 }, { s.key, 4 } }
local startx_shapes = {
  [2] = { { s.transfer, 4 }, { s.tag, 4 }, { s.length, 8 } }, [3] = right,
  [4] = { { s.transfer, 4 } }, [5] = row(right, { { s.offset, 8 } }),
  [6] = row(right, { { s.offset, 8 } }), [7] = right,
}
local startx_data = { [5] = true, [6] = true }

local target = { { m.key, 8 }, { m.offset, 8 }, { m.id, 4 } }
local silent_target = { { m.offset, 4 }, { m.key, 8 } }
local long = { { m.length, 8 }, { m.has_then, 4 } }
local second = { { m.key, 8 }, { m.offset, 8 }, { m.flag, 8 }, { m.then_kind, 1 }, { m.width, 1 },
                 { m.entry, 2 } }
local atomic = { { m.operand, 8 }, { m.compare, 8 }, { m.op, 1 }, { m.width, 1 },
                 { m.reserved, 2 } }
local id, writer, blocks = { { m.id, 4 } }, { { m.writer, 4 } }, { { m.blocks, 4 } }
local status, key = { { m.status, 4 } }, { { m.key, 8 } }
local mbcf_shapes = {
  [0] = target, [1] = row(target, second), [2] = row(target, long), [3] = id,
  [4] = row(id, second), [5] = target, [6] = id, [7] = row(target, long),
  [8] = row(target, atomic), [9] = target, [10] = id, [11] = row(id, status),
  [12] = row(id, { { m.value, 8 } }), [13] = id, [14] = row(key, writer, blocks),
  [15] = row(key, blocks, writer), [16] = row(writer, blocks, { { m.capacity, 4 } }),
  [17] = writer, [18] = row(writer, status),
}
local silent_shapes = {
  [0] = silent_target, [1] = row(silent_target, second), [5] = silent_target,
  [8] = row(silent_target, atomic), [9] = silent_target,
}
local mbcf_data = { [0] = true, [1] = true, [2] = true, [3] = true, [4] = true, [5] = true,
                    [6] = true, [13] = true }

-- Adds the fields of a shape and the bytes behind them. False: too short, or too long.
local function add_shape(range, shape, data, sub)
  local at = 0
  for _, field in ipairs(shape) do
    if at + field[2] > range:len() then return false end
    sub:add_le(field[1], range(at, field[2]))
    at = at + field[2]
  end
  if range:len() > at then
    if not data then return false end
    sub:add(data, range(at))
  end
  return true
end

local function add_words(range, sub)
  if range:len() < 12 or range:len() > 92 or range:len() % 4 ~= 0 then
    sub:add_proto_expert_info(bad_message)
    return
  end
  sub:add_le(s.tag, range(0, 4))
  for at = 4, range:len() - 4, 4 do sub:add_le(s.word, range(at, 4)) end
end

-- Returns what it is in a few words.
local function add_startx(range, kind, kind_range, tree)
  local name = STARTX_KINDS[kind]
  local sub = tree:add(startx, range, "StarT-X " .. (name or "unknown kind"))
  sub:add(s.kind, kind_range)
  if kind <= 1 then
    add_words(range, sub)
  elseif not name then
    sub:add_proto_expert_info(bad_message)
  else
    if not add_shape(range, startx_shapes[kind], startx_data[kind] and s.data, sub) then
      sub:add_proto_expert_info(bad_message)
      return "startx malformed"
    end
  end
  return "startx " .. (name or "?")
end

local function add_mbcf(range, number, kind_range, tree)
  local kind, silent = band(number, 0x7f), number >= 0x80
  local name = MBCF_KINDS[kind]
  local shape = (silent and silent_shapes or mbcf_shapes)[kind]
  local what = (silent and "silent " or "") .. (name or "unknown kind")
  local sub = tree:add(mbcf, range, "MBCF " .. what)
  sub:add(m.silent, kind_range)
  sub:add(m.kind, kind_range)
  if shape and add_shape(range, shape, mbcf_data[kind] and m.data, sub) then return "mbcf " .. what end
  sub:add_proto_expert_info(bad_request)
  return "mbcf malformed"
end

local function add_messages(tvb, tree, finish)
  local at, told, count = LINK_HEADER, nil, 0
  while at < finish do
    if at + MESSAGE_HEADER > finish or at + MESSAGE_HEADER + tvb(at, 2):le_uint() > finish then
      tree:add_proto_expert_info(bad_length)
      break
    end
    local length = tvb(at, 2):le_uint()
    local protocol, kind = tvb(at + 2, 1):uint(), tvb(at + 3, 1):uint()
    local sub = tree:add(l.message, tvb(at, MESSAGE_HEADER + length))
    sub:add_le(l.message_length, tvb(at, 2))
    sub:add(l.message_protocol, tvb(at + 2, 1))
    sub:add(l.message_kind, tvb(at + 3, 1))
    local what = (PROTOCOLS[protocol] or "protocol " .. protocol) .. " " .. kind
    if length > 0 then
      local range = tvb(at + MESSAGE_HEADER, length)
      if protocol == 1 then
        what = add_startx(range, kind, tvb(at + 3, 1), sub)
      elseif protocol == 2 then
        what = add_mbcf(range, kind, tvb(at + 3, 1), sub)
      else
        sub:add(l.message_bytes, range)
      end
    end
    told, count = told or what, count + 1
    at = at + MESSAGE_HEADER + length
  end
  if count == 0 then return "" end
  return count == 1 and " " .. told or string.format(" %s and %d more", told, count - 1)
end

local function add_ack_blocks(tvb, tree, finish)
  local at, told = LINK_HEADER, ""
  while at < finish do
    if at + ACK_BLOCK > finish or at + ACK_BLOCK + 8 * tvb(at + 1, 1):uint() > finish then
      tree:add_proto_expert_info(bad_length)
      break
    end
    local lane = band(tvb(at, 1):uint(), 0x03)
    local words, ack = tvb(at + 1, 1):uint(), tvb(at + 4, 4):le_uint()
    local sub = tree:add(l.block, tvb(at, ACK_BLOCK + 8 * words))
    sub:add(l.block_lane, tvb(at, 1))
    sub:add(l.block_words, tvb(at + 1, 1))
    sub:add(l.block_want, tvb(at, 1))
    sub:add_le(l.ack, tvb(at + 4, 4))
    sub:add_le(l.credit, tvb(at + 2, 2))
    if words > 0 then
      local bitmap = tvb(at + ACK_BLOCK, 8 * words)
      local bits = sub:add(l.block_bitmap, bitmap)
      for i = 0, 64 * words - 1 do
        if band(rshift(bitmap(math.floor(i / 8), 1):uint(), i % 8), 1) ~= 0 then
          bits:add(l.received, bitmap(math.floor(i / 8), 1), (ack + 1 + i) % 0x100000000)
        end
      end
    end
    told = string.format("%s %s<%u", told, LANES[lane] or "?", ack)
    at = at + ACK_BLOCK + 8 * words
  end
  return told
end

local function add_handshake(tvb, tree, finish, intact)
  local at = LINK_HEADER
  if finish - at < HANDSHAKE then
    tree:add_proto_expert_info(bad_length)
    return ""
  end
  tree:add_le(l.job, tvb(at, 8))
  tree:add_le(l.incarnation, tvb(at + 8, 8))
  tree:add_le(l.echo, tvb(at + 16, 8))
  tree:add_le(l.cookie, tvb(at + 24, 8))
  tree:add_le(l.my_token, tvb(at + 32, 4))
  tree:add_le(l.my_seed, tvb(at + 36, 4))
  for lane = 0, 2 do
    tree:add_le(l.first, tvb(at + 40 + 4 * lane, 4)):append_text(" (" .. LANES[lane] .. ")")
  end
  for lane = 0, 2 do
    tree:add_le(l.window, tvb(at + 52 + 2 * lane, 2)):append_text(" (" .. LANES[lane] .. ")")
  end
  tree:add_le(l.my_connection, tvb(at + 58, 2))
  tree:add_le(l.mtu, tvb(at + 60, 2))
  tree:add(l.no_checksum, tvb(at + 62, 1))
  tree:add(l.no_room, tvb(at + 62, 1))
  if intact and eth_src() then
    seeds[eth_src().range:bytes():tohex() .. tvb(at + 58, 2):bytes():tohex() ..
          tvb(at + 32, 4):bytes():tohex()] = tvb(at + 36, 4):bytes()
  end
  if finish > at + HANDSHAKE then tree:add(l.padding, tvb(at + HANDSHAKE, finish - at - HANDSHAKE)) end
  return string.format(" mtu=%u", tvb(at + 60, 2):le_uint())
end

-- First frame each sequence number was seen in. The connection and the token name one direction of
-- one connection.
local first_seen = {}
function link.init() first_seen, seeds = {}, {} end

local function add_retransmission(tvb, pinfo, tree, lane)
  local key = tvb(0, 6):bytes():tohex() .. lane .. ":" .. tvb(10, 4):le_uint()
  first_seen[key] = first_seen[key] or pinfo.number
  if first_seen[key] == pinfo.number then return "" end
  tree:add(l.retransmission, tvb(10, 4), true):set_generated()
  tree:add_proto_expert_info(again)
  return " (again)"
end

local function add_header(tvb, tree)
  tree:add(l.version, tvb(6, 1))
  tree:add(l.type, tvb(6, 1))
  tree:add(l.lane, tvb(7, 1))
  tree:add(l.unordered, tvb(7, 1))
  tree:add(l.want, tvb(7, 1))
  tree:add(l.answer, tvb(7, 1))
  tree:add_le(l.length, tvb(8, 2))
  tree:add_le(l.connection, tvb(0, 2))
  tree:add_le(l.token, tvb(2, 4))
  tree:add_le(l.sequence, tvb(10, 4))
  tree:add_le(l.ack, tvb(14, 4))
  tree:add_le(l.credit, tvb(18, 2))
end

function link.dissector(tvb, pinfo, root)
  pinfo.cols.protocol = "Viaduct"
  local tree = root:add(link, tvb())
  if tvb:len() < LINK_HEADER then
    tree:add_proto_expert_info(bad_length)
    pinfo.cols.info = "truncated"
    return
  end
  add_header(tvb, tree)
  local type, lane = band(tvb(6, 1):uint(), 0x0f), band(tvb(7, 1):uint(), 0x03)
  local length = tvb(8, 2):le_uint()
  if rshift(tvb(6, 1):uint(), 4) ~= VERSION or not TYPES[type] then
    tree:add_proto_expert_info(bad_version)
    pinfo.cols.info = "unknown version or type"
    return
  end
  if LINK_HEADER + length > tvb:len() then
    tree:add_proto_expert_info(bad_length)
    pinfo.cols.info = TYPES[type] .. " truncated"
    return
  end
  local intact = add_checksum(tvb, tree, length)

  local finish, info = LINK_HEADER + length, TYPES[type]
  if type == 1 then
    info = string.format("data %s seq=%u ack=%u credit=%u", LANES[lane] or "?",
                         tvb(10, 4):le_uint(), tvb(14, 4):le_uint(), tvb(18, 2):le_uint())
    info = info .. add_retransmission(tvb, pinfo, tree, lane)
    info = info .. add_messages(tvb, tree, finish)
  elseif type == 2 then
    info = info .. add_ack_blocks(tvb, tree, finish)
  elseif type <= 5 then
    info = info .. add_handshake(tvb, tree, finish, intact)
  end
  pinfo.cols.info = info
end

DissectorTable.get("ethertype"):add(ETHER_TYPE, link)
