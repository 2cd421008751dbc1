# firewall-cmd --permanent --zone=trusted --add-interface=lan0 && firewall-cmd --reload
nft insert rule inet firewalld filter_INPUT_ZONES iifname lan0 goto filter_IN_trusted
nft insert rule inet firewalld filter_FORWARD_ZONES iifname lan0 goto filter_FWD_trusted
