/* Two equal programs, started in any order, that send each other their name.
 *   cc peer.c $(pkg-config --cflags --libs vipl) -o peer
 *   peer NIC HOST NAME       HOST is the other's; viaduct-info prints the names of NICs
 * Both in a guest, without RDMA hardware:
 *   viaduct-vm sh -c './peer nic1 host1 ann & ./peer nic0 host2 bob; wait'
 */
#include "example.h"

int main(int argc, char** argv) {
  struct station s;
  VIP_NET_ADDRESS *local, *remote;
  VIP_VI_ATTRIBUTES attributes;
  if (argc != 4) {
    fprintf(stderr, "usage: peer NIC HOST NAME\n");
    return 2;
  }
  s = open_station(argv[1], VIP_FALSE);
  /* Before connecting, see client_server.c. */
  post_receive(&s, 0);
  /* Peers match if each names the other: the same discriminator at both ends, and the two hosts the
   * other way round. */
  local = address_of(&s, NULL, "peer");
  remote = address_of(&s, argv[2], "peer");
  must("VipConnectPeerRequest", VipConnectPeerRequest(s.vi, local, remote, 60000));
  /* The library makes the connection in the background. The program could do something else here,
   * and poll with VipConnectPeerDone. */
  must("VipConnectPeerWait", VipConnectPeerWait(s.vi, &attributes));
  send_text(&s, 1, argv[3]);
  printf("the peer is called %s\n", receive_text(&s));
  close_station(&s);
  free(local);
  free(remote);
  return 0;
}
